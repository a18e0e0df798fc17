/* graphbench.h for C++17: handles that free themselves, and exceptions in place of statuses.
 *
 * Header-only; every class holds one handle of the C API and gives it out through get(). A copy is
 * the same object, which is destroyed with the last one of them, as with std::shared_ptr. What the
 * C API lends (names, ports) is returned by value, but for ops of a graph or a partition: an
 * op_view lives as long as what it was taken from.
 *
 *     using namespace graphbench;
 *     graph g(GB_ENGINE_CPU);
 *     g.add(op(0, GB_OP_RELU, {x}, {y}, "relu"));
 *     g.finalize();
 *     for (partition &p : g.partitions()) ...
 *
 * Tools (graphbench_tools.h) are in the namespace graphbench::tools.
 */
#ifndef GRAPHBENCH_GRAPHBENCH_HPP
#define GRAPHBENCH_GRAPHBENCH_HPP

#include <graphbench/graphbench_tools.h>

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
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
        adopt(made);
    }
    void adopt(T *made)
    {
        owned_.reset(made, destroyer());
    }

  private:
    struct destroyer {
        void operator()(T *object) const noexcept
        {
            Destroy(object);
        }
    };
    std::shared_ptr<T> owned_;
};

/* A list to be filled as the C API has it. */
template <typename Entry, typename List> std::vector<Entry> list_of(List &&list)
{
    size_t count;
    check(list(0, static_cast<Entry *>(nullptr), &count));
    std::vector<Entry> entries(count);
    if (count > 0)
        check(list(count, entries.data(), static_cast<size_t *>(nullptr)));
    return entries;
}

} // namespace detail

/* Names of enumerations as in graph files, and what they name. */
inline std::string name(gb_data_type type)
{
    return gb_data_type_name(type);
}
inline std::string name(gb_op_kind kind)
{
    return gb_op_kind_name(kind);
}
inline std::string name(gb_op_attr attr)
{
    return gb_op_attr_name(attr);
}
inline std::string name(gb_property property)
{
    return gb_property_name(property);
}
inline std::string name(gb_fpmath_mode mode)
{
    return gb_fpmath_mode_name(mode);
}
inline std::string name(gb_engine_kind kind)
{
    return gb_engine_kind_name(kind);
}
inline std::string name(gb_unfused_reason reason)
{
    return gb_unfused_reason_name(reason);
}
inline std::string describe(gb_unfused_reason reason)
{
    return gb_unfused_reason_describe(reason);
}
inline void parse(const std::string &name, gb_data_type &type)
{
    check(gb_data_type_parse(name.c_str(), &type));
}
inline void parse(const std::string &name, gb_op_kind &kind)
{
    check(gb_op_kind_parse(name.c_str(), &kind));
}
inline void parse(const std::string &name, gb_op_attr &attr)
{
    check(gb_op_attr_parse(name.c_str(), &attr));
}
inline void parse(const std::string &name, gb_property &property)
{
    check(gb_property_parse(name.c_str(), &property));
}
inline void parse(const std::string &name, gb_fpmath_mode &mode)
{
    check(gb_fpmath_mode_parse(name.c_str(), &mode));
}
inline gb_attr_type type_of(gb_op_attr attr)
{
    return gb_op_attr_type(attr);
}
/* An attribute of the program's own. */
inline gb_op_attr define_attr(const std::string &name, gb_attr_type type)
{
    gb_op_attr attr;
    check(gb_op_attr_define(name.c_str(), type, &attr));
    return attr;
}
/* A kind of ops of the program's own; `size` is filled in. */
inline gb_op_kind define_op_kind(gb_op_definition definition)
{
    gb_op_kind kind;
    definition.size = sizeof definition;
    check(gb_op_kind_define(&definition, &kind));
    return kind;
}
inline size_t bytes_of(gb_data_type type, size_t count)
{
    return gb_data_type_bytes(type, count);
}

/* Of the whole program. */
inline gb_version version()
{
    return *gb_get_version();
}
inline void set_default_fpmath_mode(gb_fpmath_mode mode)
{
    check(gb_set_default_fpmath_mode(mode));
}
inline gb_fpmath_mode default_fpmath_mode()
{
    gb_fpmath_mode mode;
    check(gb_get_default_fpmath_mode(&mode));
    return mode;
}
inline void set_verbose(unsigned flags)
{
    check(gb_set_verbose(flags));
}
inline void set_dump_mode(unsigned mode)
{
    check(gb_set_dump_mode(mode));
}
inline void set_compiled_partition_cache_capacity(int capacity)
{
    check(gb_set_compiled_partition_cache_capacity(capacity));
}
inline int compiled_partition_cache_capacity()
{
    int capacity;
    check(gb_get_compiled_partition_cache_capacity(&capacity));
    return capacity;
}
inline gb_cache_counters compiled_partition_cache_counters()
{
    gb_cache_counters counters;
    check(gb_get_compiled_partition_cache_counters(&counters));
    return counters;
}
inline void set_constant_cache_capacity(gb_engine_kind kind, size_t megabytes)
{
    check(gb_set_constant_cache_capacity(kind, megabytes));
}
inline size_t constant_cache_capacity(gb_engine_kind kind)
{
    size_t megabytes;
    check(gb_get_constant_cache_capacity(kind, &megabytes));
    return megabytes;
}
inline gb_constant_cache_counters constant_cache_counters(gb_engine_kind kind)
{
    gb_constant_cache_counters counters;
    check(gb_get_constant_cache_counters(kind, &counters));
    return counters;
}

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
    /* Dims in braces, also of one axis: {4} would be a rank otherwise. */
    logical_tensor(size_t id, gb_data_type type, std::initializer_list<int64_t> sizes,
            gb_property property = GB_PROPERTY_VARIABLE, gb_layout_type layout = GB_LAYOUT_STRIDED)
        : logical_tensor(id, type, dims_t(sizes), property, layout)
    {
    }
    /* A layout that follows on dims stands behind the property. */
    logical_tensor(size_t id, gb_data_type type, std::initializer_list<int64_t> sizes,
            gb_layout_type layout, gb_property property = GB_PROPERTY_VARIABLE) = delete;
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
    /* SIZE_MAX when a dim is unknown. */
    size_t element_count() const
    {
        size_t count;
        check(gb_logical_tensor_get_element_count(this, &count));
        return count;
    }
    /* As they lie in memory, blocks behind the axes. */
    dims_t physical_dims() const
    {
        int rank;
        int64_t sizes[GB_MAX_NDIMS];
        check(gb_logical_tensor_get_physical_dims(this, &rank, sizes));
        return dims_t(sizes, sizes + rank);
    }
    bool has_same_layout_and_dtype(const gb_logical_tensor &other) const
    {
        uint8_t same;
        check(gb_logical_tensor_has_same_layout_and_dtype(this, &other, &same));
        return same != 0;
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
    allocator(gb_malloc_context_fn malloc_fn, gb_free_context_fn free_fn, void *context)
    {
        create([&](gb_allocator **made) {
            return gb_allocator_create_with_context(made, malloc_fn, free_fn, context);
        });
    }
};

/* Caches that engines share, apart from those of the process. */
class context : public detail::handle<gb_context, gb_context_destroy>
{
  public:
    /* Capacities: 0 as the process has them, -1 for none. */
    explicit context(std::int64_t compiled_partitions = 0, std::int64_t constant_megabytes = 0)
    {
        gb_context_attrs attrs = {};
        attrs.size = sizeof attrs;
        attrs.compiled_partitions = compiled_partitions;
        attrs.constant_megabytes = constant_megabytes;
        create([&](gb_context **made) { return gb_context_create(made, &attrs); });
    }
    gb_cache_counters compiled_partition_cache_counters() const
    {
        gb_cache_counters counters;
        check(gb_context_get_cache_counters(get(), &counters));
        return counters;
    }
    gb_constant_cache_counters constant_cache_counters(gb_engine_kind kind) const
    {
        gb_constant_cache_counters counters;
        check(gb_context_get_constant_cache_counters(get(), kind, &counters));
        return counters;
    }
};

class engine : public detail::handle<gb_engine, gb_engine_destroy>
{
  public:
    explicit engine(gb_engine_kind kind = GB_ENGINE_CPU, size_t index = 0)
    {
        create([&](gb_engine **made) { return gb_engine_create(made, kind, index); });
    }
    /* Adopts the handle. */
    explicit engine(gb_engine *made)
    {
        adopt(made);
    }
    engine(gb_engine_kind kind, size_t index, const allocator &memory)
    {
        create([&](gb_engine **made) {
            return gb_engine_create_with_allocator(made, kind, index, memory.get());
        });
    }
    /* `attrs.size` is filled in. */
    engine(gb_engine_kind kind, size_t index, gb_engine_attrs attrs)
    {
        attrs.size = sizeof attrs;
        create([&](gb_engine **made) {
            return gb_engine_create_with_attrs(made, kind, index, &attrs);
        });
    }
    engine(gb_engine_kind kind, size_t index, const context &caches)
        : engine(kind, index, gb_engine_attrs{0, nullptr, caches.get()})
    {
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
    size_t index() const
    {
        size_t index;
        check(gb_engine_get_index(get(), &index));
        return index;
    }
    /* NULL for a CPU. */
    void *device_handle() const
    {
        void *handle;
        check(gb_engine_get_handle(get(), &handle));
        return handle;
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
    /* Adopts the handle. */
    explicit stream(gb_stream *made)
    {
        adopt(made);
    }
    /* Executions run on the caller's threads. */
    stream(const engine &on, int concurrency, gb_parallel_for_fn parallel_for, void *pool)
    {
        create([&](gb_stream **made) {
            return gb_stream_create_with_thread_pool(
                    made, on.get(), concurrency, parallel_for, pool);
        });
    }
    /* `attrs.size` is filled in. */
    stream(const engine &on, gb_stream_attrs attrs)
    {
        attrs.size = sizeof attrs;
        create([&](gb_stream **made) {
            return gb_stream_create_with_attrs(made, on.get(), &attrs);
        });
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
    /* Adopts the handle. */
    explicit tensor(gb_tensor *made)
    {
        adopt(made);
    }
    /* A host scalar. Numbers are converted to the type of the description; what is no number is
     * copied, and std::invalid_argument thrown unless it has as many bytes as that type. */
    template <typename Value>
    static tensor scalar(const gb_logical_tensor &description, const Value &value)
    {
        if constexpr (std::is_arithmetic_v<Value>) {
            const gb_data_type type = description.data_type;
            if (type == GB_F32)
                return copied_scalar(description, static_cast<float>(value));
            if (type == GB_S64)
                return copied_scalar(description, static_cast<std::int64_t>(value));
            if (type == GB_S32)
                return copied_scalar(description, static_cast<std::int32_t>(value));
        }
        return copied_scalar(description, value);
    }
    void *data() const
    {
        void *memory;
        check(gb_tensor_get_data_handle(get(), &memory));
        return memory;
    }
    /* Brings the elements into another layout. */
    void reorder_to(tensor &dst, stream &on) const
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
    template <typename Value>
    static tensor copied_scalar(const gb_logical_tensor &description, const Value &value)
    {
        if (sizeof value != bytes_of(description.data_type, 1))
            throw std::invalid_argument("a scalar of another size than its description's type");
        tensor made;
        made.create([&](gb_tensor **out) {
            return gb_tensor_create_scalar(out, &description, &value);
        });
        return made;
    }
};

namespace detail
{
/* What can be asked of an op; Op gives its handle out. */
template <typename Op> class op_reader
{
  public:
    size_t id() const
    {
        size_t id;
        check(gb_op_get_id(self(), &id));
        return id;
    }
    gb_op_kind kind() const
    {
        gb_op_kind kind;
        check(gb_op_get_kind(self(), &kind));
        return kind;
    }
    std::string name() const
    {
        return gb_op_get_name(self());
    }
    std::vector<logical_tensor> inputs() const
    {
        std::vector<logical_tensor> list(gb_op_get_input_num(self()));
        for (size_t i = 0; i < list.size(); i++)
            check(gb_op_get_input(self(), i, &list[i]));
        return list;
    }
    std::vector<logical_tensor> outputs() const
    {
        std::vector<logical_tensor> list(gb_op_get_output_num(self()));
        for (size_t i = 0; i < list.size(); i++)
            check(gb_op_get_output(self(), i, &list[i]));
        return list;
    }
    /* Those that are set. */
    std::vector<gb_op_attr> attrs() const
    {
        return list_of<gb_op_attr>([this](size_t room, gb_op_attr *attrs, size_t *count) {
            return gb_op_get_attrs(self(), room, attrs, count);
        });
    }
    bool has_attr(gb_op_attr name) const
    {
        return value_of(name).second > 0;
    }
    /* float, int64_t, bool, void *, std::string, std::vector<float> or std::vector<int64_t>, as the
     * attribute has it; throws std::invalid_argument for another, and when it is not set. */
    template <typename Value> Value attr(gb_op_attr name) const
    {
        const std::pair<const void *, size_t> found = value_of(name);
        if (found.second == 0 || !is_of(gb_op_attr_type(name), static_cast<Value *>(nullptr)))
            throw std::invalid_argument("attribute not set, or of another type");
        return read(found.first, found.second, static_cast<Value *>(nullptr));
    }
    std::string text() const
    {
        size_t length;
        check(gb_op_get_text(self(), 0, nullptr, &length));
        std::vector<char> line(length + 1);
        check(gb_op_get_text(self(), line.size(), line.data(), &length));
        return std::string(line.data(), length);
    }
    /* Operations and bytes. */
    std::pair<double, double> work() const
    {
        std::pair<double, double> work;
        check(gb_op_get_work(self(), &work.first, &work.second));
        return work;
    }
    std::uint64_t hash() const
    {
        std::uint64_t hash;
        check(gb_op_get_hash(self(), &hash));
        return hash;
    }
    template <typename Other> bool operator==(const op_reader<Other> &other) const
    {
        uint8_t equal;
        check(gb_op_is_equal(self(), other.self(), &equal));
        return equal != 0;
    }
    const gb_op *self() const
    {
        return static_cast<const Op *>(this)->get();
    }

  private:
    std::pair<const void *, size_t> value_of(gb_op_attr name) const
    {
        std::pair<const void *, size_t> found;
        check(gb_op_get_attr(self(), name, &found.second, &found.first));
        return found;
    }
    static bool is_of(gb_attr_type type, float *)
    {
        return type == GB_ATTR_TYPE_F32;
    }
    static bool is_of(gb_attr_type type, int64_t *)
    {
        return type == GB_ATTR_TYPE_S64;
    }
    static bool is_of(gb_attr_type type, bool *)
    {
        return type == GB_ATTR_TYPE_BOOL;
    }
    static bool is_of(gb_attr_type type, void **)
    {
        return type == GB_ATTR_TYPE_POINTER;
    }
    static bool is_of(gb_attr_type type, std::string *)
    {
        return type == GB_ATTR_TYPE_STRING;
    }
    static bool is_of(gb_attr_type type, std::vector<float> *)
    {
        return type == GB_ATTR_TYPE_F32S;
    }
    static bool is_of(gb_attr_type type, std::vector<int64_t> *)
    {
        return type == GB_ATTR_TYPE_S64S;
    }
    static bool read(const void *at, size_t, bool *)
    {
        return *static_cast<const uint8_t *>(at);
    }
    static std::string read(const void *at, size_t count, std::string *)
    {
        return std::string(static_cast<const char *>(at), count);
    }
    template <typename Element>
    static std::vector<Element> read(const void *at, size_t count, std::vector<Element> *)
    {
        const Element *first = static_cast<const Element *>(at);
        return std::vector<Element>(first, first + count);
    }
    template <typename Value> static Value read(const void *at, size_t, Value *)
    {
        return *static_cast<const Value *>(at);
    }
};
} // namespace detail

/* An op that a graph or a partition lends. */
class op_view : public detail::op_reader<op_view>
{
  public:
    explicit op_view(const gb_op *lent) : lent_(lent)
    {
    }
    const gb_op *get() const noexcept
    {
        return lent_;
    }

  private:
    const gb_op *lent_;
};

class op : public detail::handle<gb_op, gb_op_destroy>, public detail::op_reader<op>
{
  public:
    using detail::op_reader<op>::attr;
    /* Adopts the handle. */
    explicit op(gb_op *made)
    {
        adopt(made);
    }
    op(size_t id, gb_op_kind kind, const std::string &name)
    {
        create([&](gb_op **made) { return gb_op_create(made, id, kind, name.c_str()); });
    }
    op(size_t id, gb_op_kind kind, const std::vector<logical_tensor> &inputs,
            const std::vector<logical_tensor> &outputs, const std::string &name = "")
        : op(id, kind, name)
    {
        for (const logical_tensor &tensor : inputs)
            input(tensor);
        for (const logical_tensor &tensor : outputs)
            output(tensor);
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
        check(gb_op_set_attr_f32(get(), name, 1, &value));
        return *this;
    }
    op &attr(gb_op_attr name, const std::vector<float> &values)
    {
        check(gb_op_set_attr_f32(get(), name, values.size(), values.data()));
        return *this;
    }
    op &attr(gb_op_attr name, int64_t value)
    {
        check(gb_op_set_attr_s64(get(), name, 1, &value));
        return *this;
    }
    op &attr(gb_op_attr name, const std::vector<int64_t> &values)
    {
        check(gb_op_set_attr_s64(get(), name, values.size(), values.data()));
        return *this;
    }
    op &attr(gb_op_attr name, bool value)
    {
        const uint8_t byte = value;
        check(gb_op_set_attr_bool(get(), name, 1, &byte));
        return *this;
    }
    op &attr(gb_op_attr name, const std::string &value)
    {
        check(gb_op_set_attr_str(get(), name, value.c_str(), value.size()));
        return *this;
    }
    /* Of an attribute that the program defined. */
    op &attr_pointer(gb_op_attr name, void *pointer)
    {
        check(gb_op_set_attr_pointer(get(), name, pointer));
        return *this;
    }
    op &attr(gb_op_attr name, const char *value)
    {
        return attr(name, std::string(value));
    }
};

namespace detail
{
/* NULL stays NULL: a place that is no port may be left empty. */
template <typename Handle, typename Tensor>
std::vector<Handle *> handles(const std::vector<Tensor *> &tensors)
{
    std::vector<Handle *> list;
    for (const tensor *t : tensors)
        list.push_back(t ? t->get() : nullptr);
    return list;
}
} // namespace detail

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
    /* Operations and bytes. */
    std::pair<double, double> work() const
    {
        std::pair<double, double> work;
        check(gb_compiled_partition_get_work(get(), &work.first, &work.second));
        return work;
    }
    double executed_flops() const
    {
        double flops;
        check(gb_compiled_partition_get_executed_flops(get(), &flops));
        return flops;
    }
    gb_memory_use memory() const
    {
        gb_memory_use use;
        check(gb_compiled_partition_get_memory(get(), &use));
        return use;
    }
    /* The layout that suits the kernels, of an input. */
    logical_tensor preferred_layout(size_t tensor_id) const
    {
        gb_logical_tensor tensor;
        check(gb_compiled_partition_query_preferred_layout(get(), tensor_id, &tensor));
        return tensor;
    }
    /* The ids of the partition that it was compiled from, and of its ops. */
    size_t partition_id() const
    {
        size_t id;
        check(gb_partition_get_id(source(), &id));
        return id;
    }
    std::vector<size_t> ops() const
    {
        return detail::list_of<size_t>([this](size_t room, size_t *ids, size_t *count) {
            return gb_partition_get_ops(source(), room, ids, count);
        });
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
    /* Tensors stand in the order of the lists given to compile; NULL where that is no port. */
    void execute(stream &on, const std::vector<const tensor *> &inputs,
            const std::vector<tensor *> &outputs, tensor *scratch = nullptr) const
    {
        const std::vector<const gb_tensor *> in = detail::handles<const gb_tensor>(inputs);
        const std::vector<gb_tensor *> out = detail::handles<gb_tensor>(outputs);
        check(gb_compiled_partition_execute(get(), on.get(), in.size(), in.data(), out.size(),
                out.data(), scratch ? scratch->get() : nullptr));
    }
    /* The same, started when the dependencies are complete; the event stands for it. */
    event execute_after(stream &on, const std::vector<const event *> &dependencies,
            const std::vector<const tensor *> &inputs, const std::vector<tensor *> &outputs,
            tensor *scratch = nullptr) const
    {
        const std::vector<const gb_tensor *> in = detail::handles<const gb_tensor>(inputs);
        const std::vector<gb_tensor *> out = detail::handles<gb_tensor>(outputs);
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
    const gb_partition *source() const
    {
        const gb_partition *source;
        check(gb_compiled_partition_get_partition(get(), &source));
        return source;
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
    /* Why it is not supported, or "". */
    std::string unsupported_reason() const
    {
        return gb_partition_get_unsupported_reason(get());
    }
    gb_engine_kind engine_kind() const
    {
        gb_engine_kind kind;
        check(gb_partition_get_engine_kind(get(), &kind));
        return kind;
    }
    std::string pattern() const
    {
        return gb_partition_get_pattern(get());
    }
    /* The op of a place in the list of ids. */
    op_view op_at(size_t index) const
    {
        const gb_op *lent;
        check(gb_partition_get_op(get(), index, &lent));
        return op_view(lent);
    }
    /* The op that a port belongs to, and which of its inputs or outputs the port is. */
    std::pair<size_t, size_t> op_of_input_port(size_t port) const
    {
        std::pair<size_t, size_t> place;
        check(gb_partition_get_input_port_op(get(), port, &place.first, &place.second));
        return place;
    }
    std::pair<size_t, size_t> op_of_output_port(size_t port) const
    {
        std::pair<size_t, size_t> place;
        check(gb_partition_get_output_port_op(get(), port, &place.first, &place.second));
        return place;
    }
    /* The layout that suits the kernels, of one of the inputs. */
    logical_tensor preferred_layout(
            const std::vector<logical_tensor> &inputs, size_t tensor_id) const
    {
        const std::vector<const gb_logical_tensor *> in = detail::pointers(inputs);
        gb_logical_tensor tensor;
        check(gb_partition_query_preferred_layout(get(), in.size(), in.data(), tensor_id, &tensor));
        return tensor;
    }
    std::vector<size_t> ops() const
    {
        return detail::list_of<size_t>([this](size_t room, size_t *ids, size_t *count) {
            return gb_partition_get_ops(get(), room, ids, count);
        });
    }
    /* Combinations of layouts: inputs as given, then output ports. */
    std::vector<std::vector<logical_tensor>> layouts(
            const std::vector<logical_tensor> &inputs) const
    {
        const std::vector<const gb_logical_tensor *> in = detail::pointers(inputs);
        const size_t width = in.size() + output_ports().size();
        size_t count;
        check(gb_partition_query_layouts(get(), in.size(), in.data(), 0, nullptr, &count));
        std::vector<gb_logical_tensor> plain(count * width);
        check(gb_partition_query_layouts(
                get(), in.size(), in.data(), count, plain.data(), nullptr));
        std::vector<std::vector<logical_tensor>> rows;
        for (size_t i = 0; i < count; i++)
            rows.emplace_back(plain.data() + i * width, plain.data() + (i + 1) * width);
        return rows;
    }
    std::vector<logical_tensor> input_ports() const
    {
        return ports(gb_partition_get_input_ports);
    }
    std::vector<logical_tensor> output_ports() const
    {
        return ports(gb_partition_get_output_ports);
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
    std::vector<logical_tensor> ports(
            gb_status (*list)(const gb_partition *, size_t, gb_logical_tensor *, size_t *)) const
    {
        const auto plain = detail::list_of<gb_logical_tensor>(
                [&](size_t room, gb_logical_tensor *tensors, size_t *count) {
                    return list(get(), room, tensors, count);
                });
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
    graph(std::initializer_list<op> ops, gb_engine_kind kind = GB_ENGINE_CPU) : graph(kind)
    {
        for (const op &o : ops)
            add(o);
    }
    using notes_t = std::function<void(const std::string &)>;
    /* Reads a graph file; it is not finalized. `notes` hears of what is unusual; the first that it
     * throws comes out here, and it hears no more. */
    static graph load(const std::string &path, const notes_t &notes = notes_t())
    {
        return made_by(notes, [&](gb_graph **out, gb_note_fn note, void *context) {
            return gb_graph_load(out, path.c_str(), note, context);
        });
    }
    static graph load_json(const std::string &path, const notes_t &notes = notes_t())
    {
        return made_by(notes, [&](gb_graph **out, gb_note_fn note, void *context) {
            return gb_graph_load_json(out, path.c_str(), note, context);
        });
    }
    static graph parse_json(const std::string &text, const notes_t &notes = notes_t())
    {
        return made_by(notes, [&](gb_graph **out, gb_note_fn note, void *context) {
            return gb_graph_parse_json(out, text.data(), text.size(), "text", note, context);
        });
    }
    static graph parse_text(const std::string &text)
    {
        return made_by(notes_t(), [&](gb_graph **out, gb_note_fn, void *) {
            return gb_graph_parse_text(out, text.data(), text.size(), "text");
        });
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
    /* The mode, and whether it holds for integers, too. */
    std::pair<gb_fpmath_mode, bool> fpmath_mode() const
    {
        gb_fpmath_mode mode;
        uint8_t apply_to_int;
        check(gb_graph_get_fpmath_mode(get(), &mode, &apply_to_int));
        return {mode, apply_to_int != 0};
    }
    void set_engine_kind(gb_engine_kind kind)
    {
        check(gb_graph_set_engine_kind(get(), kind));
    }
    /* Ends of the graph. */
    graph &make_input(const gb_logical_tensor &tensor)
    {
        check(gb_graph_make_input(get(), &tensor));
        return *this;
    }
    graph &make_constant(const gb_logical_tensor &tensor, const void *data)
    {
        check(gb_graph_make_constant(get(), &tensor, data));
        return *this;
    }
    graph &make_output(size_t tensor_id)
    {
        check(gb_graph_make_output(get(), tensor_id));
        return *this;
    }
    /* The contents of a constant and their bytes; NULL and 0 when there are none. */
    std::pair<const void *, size_t> constant(size_t tensor_id) const
    {
        std::pair<const void *, size_t> found;
        check(gb_graph_get_constant(get(), tensor_id, &found.first, &found.second));
        return found;
    }
    /* Attributes of the graph, which the program defined. */
    graph &attr(gb_op_attr name, float value)
    {
        check(gb_graph_set_attr_f32(get(), name, 1, &value));
        return *this;
    }
    graph &attr(gb_op_attr name, int64_t value)
    {
        check(gb_graph_set_attr_s64(get(), name, 1, &value));
        return *this;
    }
    graph &attr(gb_op_attr name, bool value)
    {
        const uint8_t byte = value;
        check(gb_graph_set_attr_bool(get(), name, 1, &byte));
        return *this;
    }
    graph &attr(gb_op_attr name, const std::string &value)
    {
        check(gb_graph_set_attr_str(get(), name, value.c_str(), value.size()));
        return *this;
    }
    graph &attr(gb_op_attr name, const char *value)
    {
        return attr(name, std::string(value));
    }
    graph &attr_pointer(gb_op_attr name, void *pointer)
    {
        check(gb_graph_set_attr_pointer(get(), name, pointer));
        return *this;
    }
    /* The value and its count, as gb_graph_get_attr() lends them. */
    std::pair<const void *, size_t> attr(gb_op_attr name) const
    {
        std::pair<const void *, size_t> found;
        check(gb_graph_get_attr(get(), name, &found.second, &found.first));
        return found;
    }
    std::vector<gb_op_attr> attrs() const
    {
        return detail::list_of<gb_op_attr>([this](size_t room, gb_op_attr *attrs, size_t *count) {
            return gb_graph_get_attrs(get(), room, attrs, count);
        });
    }
    /* Inside. */
    std::vector<op_view> ops() const
    {
        std::vector<op_view> list;
        for (size_t i = 0; i < gb_graph_get_op_num(get()); i++) {
            const gb_op *lent;
            check(gb_graph_get_op(get(), i, &lent));
            list.emplace_back(lent);
        }
        return list;
    }
    op_view find_op(size_t id) const
    {
        const gb_op *lent;
        check(gb_graph_find_op(get(), id, &lent));
        return op_view(lent);
    }
    /* Gives an op of the graph an attribute, before it is finalized. */
    graph &op_attr(size_t id, gb_op_attr name, float value)
    {
        check(gb_op_set_attr_f32(edited(id), name, 1, &value));
        return *this;
    }
    graph &op_attr(size_t id, gb_op_attr name, int64_t value)
    {
        check(gb_op_set_attr_s64(edited(id), name, 1, &value));
        return *this;
    }
    graph &op_attr(size_t id, gb_op_attr name, bool value)
    {
        const uint8_t byte = value;
        check(gb_op_set_attr_bool(edited(id), name, 1, &byte));
        return *this;
    }
    graph &op_attr(size_t id, gb_op_attr name, const std::string &value)
    {
        check(gb_op_set_attr_str(edited(id), name, value.c_str(), value.size()));
        return *this;
    }
    graph &op_attr(size_t id, gb_op_attr name, const char *value)
    {
        return op_attr(id, name, std::string(value));
    }
    graph &op_attr(size_t id, gb_op_attr name, const std::vector<float> &values)
    {
        check(gb_op_set_attr_f32(edited(id), name, values.size(), values.data()));
        return *this;
    }
    graph &op_attr(size_t id, gb_op_attr name, const std::vector<int64_t> &values)
    {
        check(gb_op_set_attr_s64(edited(id), name, values.size(), values.data()));
        return *this;
    }
    std::vector<logical_tensor> tensors() const
    {
        std::vector<logical_tensor> list(gb_graph_get_tensor_num(get()));
        for (size_t i = 0; i < list.size(); i++)
            check(gb_graph_get_tensor(get(), i, &list[i]));
        return list;
    }
    logical_tensor find_tensor(size_t id) const
    {
        gb_logical_tensor tensor;
        check(gb_graph_find_tensor(get(), id, &tensor));
        return tensor;
    }
    /* Empty for an input of the graph. */
    std::vector<op_view> producer(size_t tensor_id) const
    {
        const gb_op *lent;
        check(gb_graph_get_producer(get(), tensor_id, &lent));
        return lent ? std::vector<op_view>{op_view(lent)} : std::vector<op_view>();
    }
    std::vector<op_view> consumers(size_t tensor_id) const
    {
        const auto lent =
                detail::list_of<const gb_op *>([&](size_t room, const gb_op **ops, size_t *count) {
                    return gb_graph_get_consumers(get(), tensor_id, room, ops, count);
                });
        return std::vector<op_view>(lent.begin(), lent.end());
    }
    std::vector<gb_tensor_use> uses(size_t tensor_id) const
    {
        return detail::list_of<gb_tensor_use>([&](size_t room, gb_tensor_use *uses, size_t *count) {
            return gb_graph_get_uses(get(), tensor_id, room, uses, count);
        });
    }
    std::vector<logical_tensor> inputs() const
    {
        return ends(gb_graph_get_inputs);
    }
    std::vector<logical_tensor> outputs() const
    {
        return ends(gb_graph_get_outputs);
    }
    /* Calls visit(op_view) for each op. What it throws ends the visit and comes out here. */
    template <typename Visit> void visit(gb_visit_order order, Visit &&visit) const
    {
        struct call {
            Visit &visit;
            std::exception_ptr thrown;
        } c{visit, nullptr};
        const gb_status status = gb_graph_visit(
                get(), order,
                [](void *context, const gb_op *lent) {
                    call *c = static_cast<call *>(context);
                    try {
                        c->visit(op_view(lent));
                        return GB_SUCCESS;
                    } catch (...) {
                        c->thrown = std::current_exception();
                        return GB_RUNTIME_ERROR;
                    }
                },
                &c);
        if (c.thrown)
            std::rethrow_exception(c.thrown);
        check(status);
    }
    /* Operations and bytes. */
    std::pair<double, double> work() const
    {
        std::pair<double, double> work;
        check(gb_graph_get_work(get(), &work.first, &work.second));
        return work;
    }
    void verify() const
    {
        check(gb_graph_verify(get()));
    }
    void infer_shapes()
    {
        check(gb_graph_infer_shapes(get()));
    }
    /* Why the partitions are not larger. */
    std::vector<gb_unfused_edge> unfused_edges() const
    {
        return detail::list_of<gb_unfused_edge>(
                [this](size_t room, gb_unfused_edge *edges, size_t *count) {
                    return gb_graph_get_unfused_edges(get(), room, edges, count);
                });
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
        check(gb_graph_filter(get(), policy));
        return filtered();
    }
    /* The same, with at most so many ops in a partition. */
    std::vector<partition> partitions_within(gb_policy policy, size_t most_ops)
    {
        check(gb_graph_filter_within(get(), policy, most_ops));
        return filtered();
    }

  private:
    std::vector<partition> filtered() const
    {
        const auto plain = detail::list_of<gb_partition *>(
                [this](size_t room, gb_partition **made, size_t *count) {
                    return gb_graph_get_partitions(get(), room, made, count);
                });
        std::vector<partition> list;
        list.reserve(plain.size());
        for (gb_partition *p : plain)
            list.emplace_back(p);
        return list;
    }
    gb_op *edited(size_t id)
    {
        gb_op *lent;
        check(gb_graph_edit_op(get(), id, &lent));
        return lent;
    }
    explicit graph(std::nullptr_t)
    {
    }
    struct listener {
        const notes_t &notes;
        std::exception_ptr thrown;
        static void hear(void *context, const char *message)
        {
            listener *l = static_cast<listener *>(context);
            if (l->thrown)
                return;
            try {
                l->notes(message);
            } catch (...) {
                l->thrown = std::current_exception();
            }
        }
    };
    template <typename Create> static graph made_by(const notes_t &notes, Create &&call)
    {
        listener l{notes, nullptr};
        gb_graph *out = nullptr;
        graph made(nullptr);
        const gb_status status = call(&out, notes ? listener::hear : nullptr, &l);
        if (status == GB_SUCCESS)
            made.adopt(out);
        if (l.thrown)
            std::rethrow_exception(l.thrown);
        check(status);
        return made;
    }
    std::vector<logical_tensor> ends(
            gb_status (*list)(const gb_graph *, size_t, gb_logical_tensor *, size_t *)) const
    {
        const auto plain = detail::list_of<gb_logical_tensor>(
                [&](size_t room, gb_logical_tensor *tensors, size_t *count) {
                    return list(get(), room, tensors, count);
                });
        return std::vector<logical_tensor>(plain.begin(), plain.end());
    }
};

namespace tools
{

inline void set_tensor(graph &g, const gb_logical_tensor &tensor)
{
    check(gb_graph_set_tensor(g.get(), &tensor));
}
inline void set_op_kind(graph &g, size_t op_id, gb_op_kind kind)
{
    check(gb_graph_set_op_kind(g.get(), op_id, kind));
}
inline void bypass_op(graph &g, size_t op_id, size_t input)
{
    check(gb_graph_bypass_op(g.get(), op_id, input));
}
/* Types of outputs may be GB_UNDEF: they then follow. */
inline op make_op(const graph &g, const std::string &kind, const std::vector<size_t> &inputs,
        const std::vector<gb_data_type> &outputs)
{
    gb_op *made;
    check(gb_graph_make_op(&made, g.get(), kind.c_str(), inputs.size(), inputs.data(),
            outputs.size(), outputs.data()));
    return op(made);
}
inline void remove_op(graph &g, size_t op_id)
{
    check(gb_graph_remove_op(g.get(), op_id));
}
inline void replace_op(graph &g, size_t op_id, const op &other)
{
    check(gb_graph_replace_op(g.get(), op_id, other.get()));
}
inline void insert_op(graph &g, size_t tensor_id, const op &added, size_t consumer_id = GB_NO_ID)
{
    check(gb_graph_insert_op(g.get(), tensor_id, consumer_id, added.get()));
}
inline void set_left_out_pass(const char *name)
{
    check(gb_set_left_out_pass(name));
}

inline void set_bf16_products(gb_bf16_products products)
{
    check(gb_set_bf16_products(products));
}
inline void set_caches(const char *caches)
{
    check(gb_set_caches(caches));
}

inline void set_memory_checks(bool on)
{
    gb_set_memory_checks(on);
}

inline std::array<size_t, 3> get_caches()
{
    std::array<size_t, 3> bytes;
    gb_get_caches(bytes.data());
    return bytes;
}

inline void set_pass_mode(unsigned mode)
{
    check(gb_set_pass_mode(mode));
}
inline void write_op_table(const std::string &path)
{
    check(gb_op_table_write(path.c_str()));
}
/* A sum of gb_op_trait. */
inline unsigned traits(gb_op_kind kind)
{
    return gb_op_kind_get_traits(kind);
}
inline gb_value_range input_range(gb_op_kind kind, size_t input)
{
    return gb_op_kind_get_input_range(kind, input);
}
/* None: the attribute takes any word, is no string, or is none of the kind. */
inline std::vector<std::string> attr_words(gb_op_kind kind, gb_op_attr attr)
{
    std::vector<std::string> words;
    const char *const *word = gb_op_kind_get_attr_words(kind, attr);
    for (; word && *word; word++)
        words.emplace_back(*word);
    return words;
}
inline size_t sample_count(gb_op_kind kind)
{
    return gb_op_sample_num(kind);
}
inline op make_sample(gb_op_kind kind, size_t index)
{
    gb_op *made;
    check(gb_op_sample_create(&made, kind, index));
    return op(made);
}

} // namespace tools

} // namespace graphbench

#endif
