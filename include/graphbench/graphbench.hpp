/* graphbench.h for C++17: handles that free themselves, and exceptions in place of statuses.
 *
 * Header-only; every class holds one handle of the C API, is moved and not copied, and gives the
 * handle out through get(). What the C API lends (names, ports) is returned by value.
 *
 *     using namespace graphbench;
 *     graph g(GB_ENGINE_CPU);
 *     g.add(op(0, GB_OP_RELU, "relu").input(x).output(y));
 *     g.finalize();
 *     for (partition &p : g.partitions()) ...
 */
#ifndef GRAPHBENCH_GRAPHBENCH_HPP
#define GRAPHBENCH_GRAPHBENCH_HPP

#include <graphbench/graphbench.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace graphbench
{

/* A failed call: its status, and what gb_last_error() said. */
class error : public std::runtime_error
{
  public:
    explicit error(gb_status status)
        : std::runtime_error(std::string(gb_status_name(status)) + ": " + gb_last_error()),
          status_(status)
    {
    }
    gb_status status() const noexcept
    {
        return status_;
    }

  private:
    gb_status status_;
};

inline void check(gb_status status)
{
    if (status != GB_SUCCESS)
        throw error(status);
}

namespace detail
{

template <typename T, gb_status (*Destroy)(T *)> class handle
{
  public:
    T *get() const noexcept
    {
        return owned_.get();
    }

  protected:
    /* For the out-parameter of a create function. */
    template <typename Create> void create(Create &&call)
    {
        T *made = nullptr;
        check(call(&made));
        owned_.reset(made);
    }
    void adopt(T *made) noexcept
    {
        owned_.reset(made);
    }

  private:
    struct destroyer {
        void operator()(T *object) const noexcept
        {
            Destroy(object);
        }
    };
    std::unique_ptr<T, destroyer> owned_;
};

} // namespace detail

/* A description of a tensor; converts to the C struct, whose members stay public. */
struct logical_tensor : gb_logical_tensor {
    using dims_t = std::vector<int64_t>;

    logical_tensor() : logical_tensor(GB_NO_ID, GB_UNDEF)
    {
    }
    logical_tensor(const gb_logical_tensor &tensor) : gb_logical_tensor(tensor)
    {
    }
    /* Of unknown shape. */
    logical_tensor(size_t id, gb_data_type type, int rank = GB_UNKNOWN_NDIMS,
            gb_layout_type layout = GB_LAYOUT_STRIDED, gb_property property = GB_PROPERTY_VARIABLE)
    {
        check(gb_logical_tensor_init(this, id, type, rank, layout, property));
    }
    /* Dense. */
    logical_tensor(size_t id, gb_data_type type, const dims_t &sizes,
            gb_property property = GB_PROPERTY_VARIABLE, gb_layout_type layout = GB_LAYOUT_STRIDED)
    {
        check(gb_logical_tensor_init_with_dims(
                this, id, type, static_cast<int>(sizes.size()), sizes.data(), layout, property));
    }
    /* Strided. */
    logical_tensor(size_t id, gb_data_type type, const dims_t &sizes, const dims_t &steps,
            gb_property property = GB_PROPERTY_VARIABLE)
    {
        if (sizes.size() != steps.size())
            throw std::invalid_argument("as many strides as dims are needed");
        check(gb_logical_tensor_init_with_strides(this, id, type, static_cast<int>(sizes.size()),
                sizes.data(), steps.data(), property));
    }
    /* "acdb", "aBcd16b", ...; the dims are known. */
    logical_tensor &set_layout(const std::string &layout)
    {
        check(gb_logical_tensor_set_layout(this, layout.c_str()));
        return *this;
    }
    std::string layout() const
    {
        return gb_logical_tensor_get_layout(this);
    }
    size_t mem_size() const
    {
        size_t bytes;
        check(gb_logical_tensor_get_mem_size(this, &bytes));
        return bytes;
    }
    bool operator==(const gb_logical_tensor &other) const
    {
        uint8_t equal;
        check(gb_logical_tensor_is_equal(this, &other, &equal));
        return equal != 0;
    }
};

namespace detail
{
inline std::vector<const gb_logical_tensor *> pointers(const std::vector<logical_tensor> &list)
{
    std::vector<const gb_logical_tensor *> result;
    for (const logical_tensor &tensor : list)
        result.push_back(&tensor);
    return result;
}
inline std::vector<gb_logical_tensor *> pointers(std::vector<logical_tensor> &list)
{
    std::vector<gb_logical_tensor *> result;
    for (logical_tensor &tensor : list)
        result.push_back(&tensor);
    return result;
}
} // namespace detail

class allocator : public detail::handle<gb_allocator, gb_allocator_destroy>
{
  public:
    allocator(gb_malloc_fn malloc_fn, gb_free_fn free_fn)
    {
        create([&](gb_allocator **made) { return gb_allocator_create(made, malloc_fn, free_fn); });
    }
};

class engine : public detail::handle<gb_engine, gb_engine_destroy>
{
  public:
    explicit engine(gb_engine_kind kind = GB_ENGINE_CPU, size_t index = 0)
    {
        create([&](gb_engine **made) { return gb_engine_create(made, kind, index); });
    }
    engine(gb_engine_kind kind, size_t index, const allocator &memory)
    {
        create([&](gb_engine **made) {
            return gb_engine_create_with_allocator(made, kind, index, memory.get());
        });
    }
    static size_t count(gb_engine_kind kind)
    {
        size_t n;
        check(gb_engine_get_count(kind, &n));
        return n;
    }
    gb_engine_kind kind() const
    {
        gb_engine_kind kind;
        check(gb_engine_get_kind(get(), &kind));
        return kind;
    }
    std::string description() const
    {
        return gb_engine_get_description(get());
    }
    bool has_host_memory() const
    {
        uint8_t host_memory;
        check(gb_engine_has_host_memory(get(), &host_memory));
        return host_memory != 0;
    }
};

class stream : public detail::handle<gb_stream, gb_stream_destroy>
{
  public:
    explicit stream(const engine &on)
    {
        create([&](gb_stream **made) { return gb_stream_create(made, on.get()); });
    }
    /* Lent by the stream. */
    const gb_engine *on() const
    {
        const gb_engine *engine;
        check(gb_stream_get_engine(get(), &engine));
        return engine;
    }
    void wait()
    {
        check(gb_stream_wait(get()));
    }
};

/* Stands for one execution. */
class event : public detail::handle<gb_event, gb_event_destroy>
{
  public:
    /* Adopts the handle. */
    explicit event(gb_event *made)
    {
        adopt(made);
    }
    void wait() const
    {
        check(gb_event_wait(get()));
    }
    bool is_complete() const
    {
        uint8_t complete;
        check(gb_event_is_complete(get(), &complete));
        return complete != 0;
    }
};

class tensor : public detail::handle<gb_tensor, gb_tensor_destroy>
{
  public:
    /* By default the memory is the tensor's own. */
    tensor(const gb_logical_tensor &description, const engine &on,
            void *memory = GB_MEMORY_ALLOCATE)
    {
        create([&](gb_tensor **made) {
            return gb_tensor_create(made, &description, on.get(), memory);
        });
    }
    /* A host scalar; the value is copied. */
    template <typename Value>
    static tensor scalar(const gb_logical_tensor &description, const Value &value)
    {
        tensor made;
        made.create([&](gb_tensor **out) {
            return gb_tensor_create_scalar(out, &description, &value);
        });
        return made;
    }
    void *data() const
    {
        void *memory;
        check(gb_tensor_get_data_handle(get(), &memory));
        return memory;
    }
    /* Brings the elements into another layout. */
    void reorder_to(const tensor &dst, const stream &on) const
    {
        check(gb_tensor_reorder(get(), dst.get(), on.get()));
    }
    void set_data(void *memory)
    {
        check(gb_tensor_set_data_handle(get(), memory));
    }
    /* Copies bytes of the tensor's memory, wherever it is. */
    void read(stream &on, void *data, size_t bytes, size_t offset = 0) const
    {
        check(gb_tensor_read(get(), on.get(), offset, bytes, data));
    }
    void write(stream &on, const void *data, size_t bytes, size_t offset = 0)
    {
        check(gb_tensor_write(get(), on.get(), offset, bytes, data));
    }
    void *map(stream &on)
    {
        void *pointer;
        check(gb_tensor_map(get(), on.get(), &pointer));
        return pointer;
    }
    void unmap(stream &on, void *pointer)
    {
        check(gb_tensor_unmap(get(), on.get(), pointer));
    }
    /* Lent by the tensor; NULL for a host scalar. */
    const gb_engine *on() const
    {
        const gb_engine *engine;
        check(gb_tensor_get_engine(get(), &engine));
        return engine;
    }
    logical_tensor description() const
    {
        gb_logical_tensor description;
        check(gb_tensor_get_logical_tensor(get(), &description));
        return description;
    }

  private:
    tensor() = default;
};

class op : public detail::handle<gb_op, gb_op_destroy>
{
  public:
    op(size_t id, gb_op_kind kind, const std::string &name)
    {
        create([&](gb_op **made) { return gb_op_create(made, id, kind, name.c_str()); });
    }
    op &input(const gb_logical_tensor &tensor)
    {
        check(gb_op_add_input(get(), &tensor));
        return *this;
    }
    op &output(const gb_logical_tensor &tensor)
    {
        check(gb_op_add_output(get(), &tensor));
        return *this;
    }
    op &attr(gb_op_attr name, float value)
    {
        check(gb_op_set_attr_f32(get(), name, &value, 1));
        return *this;
    }
    op &attr(gb_op_attr name, const std::vector<float> &values)
    {
        check(gb_op_set_attr_f32(get(), name, values.data(), values.size()));
        return *this;
    }
    op &attr(gb_op_attr name, int64_t value)
    {
        check(gb_op_set_attr_s64(get(), name, &value, 1));
        return *this;
    }
    op &attr(gb_op_attr name, const std::vector<int64_t> &values)
    {
        check(gb_op_set_attr_s64(get(), name, values.data(), values.size()));
        return *this;
    }
    op &attr(gb_op_attr name, bool value)
    {
        const uint8_t byte = value;
        check(gb_op_set_attr_bool(get(), name, &byte, 1));
        return *this;
    }
    op &attr(gb_op_attr name, const std::string &value)
    {
        check(gb_op_set_attr_str(get(), name, value.c_str(), value.size()));
        return *this;
    }
    op &attr(gb_op_attr name, const char *value)
    {
        return attr(name, std::string(value));
    }
};

class compiled_partition
    : public detail::handle<gb_compiled_partition, gb_compiled_partition_destroy>
{
  public:
    /* Adopts the handle. */
    explicit compiled_partition(gb_compiled_partition *made)
    {
        adopt(made);
    }

    logical_tensor query(size_t tensor_id) const
    {
        gb_logical_tensor tensor;
        check(gb_compiled_partition_query_logical_tensor(get(), tensor_id, &tensor));
        return tensor;
    }
    std::vector<gb_inplace_pair> inplace_ports() const
    {
        size_t count;
        const gb_inplace_pair *pairs;
        check(gb_compiled_partition_get_inplace_ports(get(), &count, &pairs));
        return std::vector<gb_inplace_pair>(pairs, pairs + count);
    }
    logical_tensor scratchpad() const
    {
        gb_logical_tensor tensor;
        check(gb_compiled_partition_get_scratchpad(get(), &tensor));
        return tensor;
    }
    std::string kernels() const
    {
        return gb_compiled_partition_get_kernels(get());
    }
    /* For concrete shapes of inputs, where they were compiled with unknown dims. */
    compiled_partition specialize(const std::vector<logical_tensor> &inputs,
            const std::vector<logical_tensor> &outputs = {}) const
    {
        const std::vector<const gb_logical_tensor *> in = detail::pointers(inputs),
                                                     out = detail::pointers(outputs);
        gb_compiled_partition *made;
        check(gb_compiled_partition_specialize(
                get(), &made, in.size(), in.data(), out.size(), out.data()));
        return compiled_partition(made);
    }
    /* The outputs, completed for these inputs. */
    std::vector<logical_tensor> infer_shape(
            const std::vector<logical_tensor> &inputs, std::vector<logical_tensor> outputs) const
    {
        const std::vector<const gb_logical_tensor *> in = detail::pointers(inputs);
        const std::vector<gb_logical_tensor *> out = detail::pointers(outputs);
        check(gb_compiled_partition_infer_shape(
                get(), in.size(), in.data(), out.size(), out.data()));
        return outputs;
    }
    /* Tensors stand in the order of the lists given to compile. */
    void execute(stream &on, const std::vector<const tensor *> &inputs,
            const std::vector<const tensor *> &outputs, const tensor *scratch = nullptr) const
    {
        const std::vector<const gb_tensor *> in = handles(inputs), out = handles(outputs);
        check(gb_compiled_partition_execute(get(), on.get(), in.size(), in.data(), out.size(),
                out.data(), scratch ? scratch->get() : nullptr));
    }
    /* The same, started when the dependencies are complete; the event stands for it. */
    event execute_after(stream &on, const std::vector<const event *> &dependencies,
            const std::vector<const tensor *> &inputs, const std::vector<const tensor *> &outputs,
            const tensor *scratch = nullptr) const
    {
        const std::vector<const gb_tensor *> in = handles(inputs), out = handles(outputs);
        std::vector<const gb_event *> after;
        for (const event *e : dependencies)
            after.push_back(e->get());
        gb_event *made = nullptr;
        check(gb_compiled_partition_execute_with_events(get(), on.get(), in.size(), in.data(),
                out.size(), out.data(), scratch ? scratch->get() : nullptr, after.size(),
                after.data(), &made));
        return event(made);
    }

  private:
    static std::vector<const gb_tensor *> handles(const std::vector<const tensor *> &tensors)
    {
        std::vector<const gb_tensor *> list;
        for (const tensor *t : tensors)
            list.push_back(t->get());
        return list;
    }
};

class partition : public detail::handle<gb_partition, gb_partition_destroy>
{
  public:
    /* Adopts the handle. */
    explicit partition(gb_partition *made)
    {
        adopt(made);
    }
    /* Of a single op, without a graph. */
    explicit partition(const op &single, gb_engine_kind kind = GB_ENGINE_CPU)
    {
        create([&](gb_partition **made) {
            return gb_partition_create_with_op(made, single.get(), kind);
        });
    }

    size_t id() const
    {
        size_t id;
        check(gb_partition_get_id(get(), &id));
        return id;
    }
    bool is_supported() const
    {
        uint8_t supported;
        check(gb_partition_is_supported(get(), &supported));
        return supported != 0;
    }
    std::string pattern() const
    {
        return gb_partition_get_pattern(get());
    }
    std::vector<size_t> ops() const
    {
        size_t count;
        check(gb_partition_get_op_num(get(), &count));
        std::vector<size_t> ids(count);
        check(gb_partition_get_ops(get(), count, ids.data()));
        return ids;
    }
    std::vector<logical_tensor> input_ports() const
    {
        return ports(gb_partition_get_input_ports_num, gb_partition_get_input_ports);
    }
    std::vector<logical_tensor> output_ports() const
    {
        return ports(gb_partition_get_output_ports_num, gb_partition_get_output_ports);
    }
    compiled_partition compile(const std::vector<logical_tensor> &inputs,
            const std::vector<logical_tensor> &outputs, const engine &on) const
    {
        const std::vector<const gb_logical_tensor *> in = detail::pointers(inputs),
                                                     out = detail::pointers(outputs);
        gb_compiled_partition *made;
        check(gb_partition_compile(
                get(), &made, in.size(), in.data(), out.size(), out.data(), on.get()));
        return compiled_partition(made);
    }
    /* The outputs, completed for these inputs. */
    std::vector<logical_tensor> infer_shape(
            const std::vector<logical_tensor> &inputs, std::vector<logical_tensor> outputs) const
    {
        const std::vector<const gb_logical_tensor *> in = detail::pointers(inputs);
        const std::vector<gb_logical_tensor *> out = detail::pointers(outputs);
        check(gb_partition_infer_shape(get(), in.size(), in.data(), out.size(), out.data()));
        return outputs;
    }

  private:
    std::vector<logical_tensor> ports(gb_status (*count)(const gb_partition *, size_t *),
            gb_status (*list)(const gb_partition *, size_t, gb_logical_tensor *)) const
    {
        size_t n;
        check(count(get(), &n));
        std::vector<gb_logical_tensor> plain(n);
        check(list(get(), n, plain.data()));
        return std::vector<logical_tensor>(plain.begin(), plain.end());
    }
};

class graph : public detail::handle<gb_graph, gb_graph_destroy>
{
  public:
    /* With the default fpmath mode. */
    explicit graph(gb_engine_kind kind = GB_ENGINE_CPU)
    {
        create([&](gb_graph **made) { return gb_graph_create(made, kind); });
    }
    graph(gb_engine_kind kind, gb_fpmath_mode mode)
    {
        create([&](gb_graph **made) { return gb_graph_create_with_fpmath_mode(made, kind, mode); });
    }
    /* Reads a graph file; it is not finalized. */
    static graph load(const std::string &path)
    {
        graph made(nullptr);
        made.create(
                [&](gb_graph **out) { return gb_graph_load(out, path.c_str(), nullptr, nullptr); });
        return made;
    }
    void save(const std::string &path) const
    {
        check(gb_graph_save_json(get(), path.c_str()));
    }
    void save_text(const std::string &path) const
    {
        check(gb_graph_save_text(get(), path.c_str()));
    }
    /* Of the content: what is computed, whatever ids and order of adding. */
    std::uint64_t hash() const
    {
        std::uint64_t hash;
        check(gb_graph_get_hash(get(), &hash));
        return hash;
    }
    bool operator==(const graph &other) const
    {
        uint8_t equal;
        check(gb_graph_is_equal(get(), other.get(), &equal));
        return equal != 0;
    }
    void set_fpmath_mode(gb_fpmath_mode mode, bool apply_to_int = false)
    {
        check(gb_graph_set_fpmath_mode(get(), mode, apply_to_int));
    }
    graph &add(const op &added)
    {
        check(gb_graph_add_op(get(), added.get()));
        return *this;
    }
    void finalize()
    {
        check(gb_graph_finalize(get()));
    }
    bool is_finalized() const
    {
        uint8_t finalized;
        check(gb_graph_is_finalized(get(), &finalized));
        return finalized != 0;
    }
    /* In an order in which they can be executed. */
    std::vector<partition> partitions(gb_policy policy = GB_POLICY_FUSION)
    {
        size_t count;
        check(gb_graph_filter(get(), policy));
        check(gb_graph_get_partition_num(get(), &count));
        std::vector<gb_partition *> plain(count);
        std::vector<partition> list;
        list.reserve(count);
        if (count > 0)
            check(gb_graph_get_partitions(get(), count, plain.data()));
        for (gb_partition *p : plain)
            list.emplace_back(p);
        return list;
    }

  private:
    explicit graph(std::nullptr_t)
    {
    }
};

} // namespace graphbench

#endif
