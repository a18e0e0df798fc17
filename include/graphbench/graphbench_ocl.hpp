/* graphbench_ocl.h for C++, in the style of graphbench.hpp. */
#ifndef GRAPHBENCH_GRAPHBENCH_OCL_HPP
#define GRAPHBENCH_GRAPHBENCH_OCL_HPP

#include <graphbench/graphbench.hpp>
#include <graphbench/graphbench_ocl.h>

namespace graphbench
{
namespace ocl
{

inline engine make_engine(size_t index = 0, gb_ocl_memory_kind kind = GB_OCL_MEMORY_AUTO)
{
    gb_engine *made = nullptr;
    check(gb_ocl_engine_create(&made, index, kind));
    return engine(made);
}
/* On a device and a context of the application's; the allocator is copied. */
inline engine make_engine(cl_device_id device, cl_context context,
        gb_ocl_memory_kind kind = GB_OCL_MEMORY_AUTO, const gb_ocl_allocator *memory = nullptr)
{
    gb_engine *made = nullptr;
    check(gb_ocl_engine_create_with_context(&made, device, context, kind, memory));
    return engine(made);
}
/* With kernels that an engine built before. */
inline engine make_engine(cl_device_id device, cl_context context, const std::vector<uint8_t> &blob,
        gb_ocl_memory_kind kind = GB_OCL_MEMORY_AUTO, const gb_ocl_allocator *memory = nullptr)
{
    gb_engine *made = nullptr;
    check(gb_ocl_engine_create_from_cache_blob(
            &made, device, context, kind, memory, blob.size(), blob.data()));
    return engine(made);
}
inline std::vector<uint8_t> cache_blob_of(const engine &on)
{
    size_t n = 0;
    check(gb_ocl_engine_get_cache_blob(on.get(), 0, nullptr, &n));
    std::vector<uint8_t> blob(n);
    check(gb_ocl_engine_get_cache_blob(on.get(), n, blob.data(), &n));
    blob.resize(n < blob.size() ? n : blob.size());
    return blob;
}
inline std::vector<uint8_t> cache_blob_id_of(cl_device_id device)
{
    size_t n = 0;
    check(gb_ocl_get_cache_blob_id(device, 0, nullptr, &n));
    std::vector<uint8_t> id(n);
    check(gb_ocl_get_cache_blob_id(device, n, id.data(), &n));
    return id;
}
/* Lent by the engine. */
inline cl_device_id device_of(const engine &on)
{
    cl_device_id device = nullptr;
    check(gb_ocl_engine_get_device(on.get(), &device));
    return device;
}
inline cl_context context_of(const engine &on)
{
    cl_context context = nullptr;
    check(gb_ocl_engine_get_context(on.get(), &context));
    return context;
}
inline gb_ocl_memory_kind memory_kind_of(const engine &on)
{
    gb_ocl_memory_kind kind;
    check(gb_ocl_engine_get_memory_kind(on.get(), &kind));
    return kind;
}
inline uint64_t build_time_of(const engine &on)
{
    uint64_t nanoseconds = 0;
    check(gb_ocl_engine_get_build_time(on.get(), &nanoseconds));
    return nanoseconds;
}

inline stream make_stream(const engine &on, gb_ocl_stream_kind kind = GB_OCL_STREAM_IN_ORDER)
{
    gb_stream *made = nullptr;
    check(gb_ocl_stream_create(&made, on.get(), kind));
    return stream(made);
}
inline stream make_stream(const engine &on, cl_command_queue queue)
{
    gb_stream *made = nullptr;
    check(gb_ocl_stream_create_with_queue(&made, on.get(), queue));
    return stream(made);
}
/* Lent by the stream. */
inline cl_command_queue queue_of(const stream &s)
{
    cl_command_queue queue = nullptr;
    check(gb_ocl_stream_get_queue(s.get(), &queue));
    return queue;
}

/* On a cl_mem, or an address of shared memory. */
inline tensor make_tensor(const gb_logical_tensor &description, const engine &on,
        gb_ocl_memory_kind kind, void *memory)
{
    gb_tensor *made = nullptr;
    check(gb_ocl_tensor_create(&made, &description, on.get(), kind, memory));
    return tensor(made);
}

/* Started when the dependencies are complete; the caller releases the event. */
inline cl_event execute(const compiled_partition &compiled, stream &on,
        const std::vector<const tensor *> &inputs, const std::vector<tensor *> &outputs,
        const std::vector<cl_event> &dependencies = {}, tensor *scratch = nullptr)
{
    const std::vector<const gb_tensor *> in = detail::handles<const gb_tensor>(inputs);
    const std::vector<gb_tensor *> out = detail::handles<gb_tensor>(outputs);
    cl_event event = nullptr;
    check(gb_ocl_compiled_partition_execute(compiled.get(), on.get(), in.size(), in.data(),
            out.size(), out.data(), scratch ? scratch->get() : nullptr, dependencies.size(),
            dependencies.data(), &event));
    return event;
}
/* Nanoseconds of the device's clock. */
inline uint64_t device_time(const event &of)
{
    uint64_t nanoseconds = 0;
    check(gb_ocl_event_get_device_time(of.get(), &nanoseconds));
    return nanoseconds;
}

} // namespace ocl
} // namespace graphbench

#endif
