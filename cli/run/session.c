/* Engines and streams for cases, of any kind. */
#include "cli/run/session.h"

#include "cli/options/message.h"
#include "cli/run/held_memory.h"

#include <graphbench/graphbench_tools.h>
#include <omp.h>
#include <stdio.h>
#ifdef GB_HAS_OPENCL
#include <graphbench/graphbench_ocl.h>
#endif

static const char no_device[] =
#ifdef GB_HAS_OPENCL
        "no OpenCL device: install a driver, as Debian's pocl-opencl-icd for CPUs, or see "
        "docs/opencl.md";
#else
        "this build has no OpenCL: install ocl-icd-opencl-dev and configure with -DGB_OPENCL=ON";
#endif

void gb_cli_session_free(gb_session *session)
{
    gb_stream_destroy(session->stream);
    gb_engine_destroy(session->engine);
    gb_cli_held_free(session->held);
    *session = (gb_session){.on_failure = session->on_failure,
            .on_failure_context = session->on_failure_context}; /* whoever uses it next */
}

int gb_cli_default_threads(void)
{
    static int as_started; /* 0: not asked yet */
    if (!as_started)
        as_started = omp_get_max_threads();
    return as_started;
}

static void set_threads(const gb_settings *settings)
{
    int as_started = gb_cli_default_threads();
    omp_set_num_threads(settings->threads ? (int)settings->threads : as_started);
}

/* What is to be evicted from the caches has to be found. */
static bool lists_memory(const gb_settings *settings)
{
    return settings->cold_cache != COLD_NONE && settings->engine_kind == GB_ENGINE_CPU;
}

static bool is_open(const gb_session *session, const gb_settings *settings)
{
    return session->engine && session->engine_kind == settings->engine_kind &&
           session->engine_index == settings->engine_index &&
           session->threads == settings->threads && session->memory_kind == settings->memory_kind &&
           session->out_of_order == settings->out_of_order &&
           (session->held != NULL) == lists_memory(settings);
}

#ifdef GB_HAS_OPENCL
static gb_status open_gpu(gb_session *session, const gb_settings *settings)
{
    static const gb_ocl_memory_kind kinds[] = {[MEMORY_AUTO] = GB_OCL_MEMORY_AUTO,
            [MEMORY_BUFFER] = GB_OCL_MEMORY_BUFFER,
            [MEMORY_SVM] = GB_OCL_MEMORY_SVM,
            [MEMORY_USM] = GB_OCL_MEMORY_USM};
    gb_status status = gb_ocl_engine_create(
            &session->engine, (size_t)settings->engine_index, kinds[settings->memory_kind]);
    if (status != GB_SUCCESS)
        return status;
    return gb_ocl_stream_create(&session->stream, session->engine,
            settings->out_of_order ? GB_OCL_STREAM_OUT_OF_ORDER : GB_OCL_STREAM_IN_ORDER);
}
#endif

int64_t gb_cli_session_build_ns(const gb_session *session)
{
    uint64_t nanoseconds;
#ifdef GB_HAS_OPENCL
    if (session->engine_kind == GB_ENGINE_GPU &&
            gb_ocl_engine_get_build_time(session->engine, &nanoseconds) == GB_SUCCESS)
        return (int64_t)nanoseconds;
#endif
    (void)session, (void)nanoseconds;
    return -1;
}

static gb_status open_any(gb_session *session, const gb_settings *settings)
{
#ifdef GB_HAS_OPENCL
    if (settings->engine_kind == GB_ENGINE_GPU)
        return open_gpu(session, settings);
#endif
    gb_status status = lists_memory(settings) && settings->engine_index == 0
                               ? gb_cli_held_engine_create(&session->engine, &session->held)
                               : gb_engine_create(&session->engine, settings->engine_kind,
                                         (size_t)settings->engine_index);
    return status != GB_SUCCESS ? status : gb_stream_create(&session->stream, session->engine);
}

/* Where times or programs are asked for, every case compiles and prepares anew. Checks run with
 * caches as applications do: what one case leaves there must not answer for another. They check the
 * library's memory, too. */
gb_status gb_cli_session_set_mode(const gb_settings *settings, bool none)
{
    enum { PARTITIONS = 256, MEGABYTES = 64 };
    bool checks = settings->mode & MODE_CORRECTNESS && !(settings->mode & MODE_PERFORMANCE) &&
                  !settings->print;
    bool real = checks && !none && !settings->verbose;
    gb_set_memory_checks(checks);
    LIB_TRY(gb_set_compiled_partition_cache_capacity(real ? PARTITIONS : 0));
    LIB_TRY(gb_set_constant_cache_capacity(settings->engine_kind, real ? MEGABYTES : 0));
    return GB_SUCCESS;
}

static gb_status choose_products(const gb_settings *settings, gb_case_result *result, bool *go_on)
{
    const gb_status status = gb_set_bf16_products(settings->bf16_products);
    *go_on = status == GB_SUCCESS;
    if (status != GB_UNIMPLEMENTED)
        return status == GB_SUCCESS ? status : gb_cli_fail_library(status);
    gb_cli_result_set(result, CASE_SKIPPED, "%s", gb_last_error());
    return GB_SUCCESS;
}

gb_status gb_cli_session_open(
        gb_session *session, const gb_settings *settings, gb_case_result *result, bool *go_on)
{
    size_t devices = 0;
    *go_on = true;
    LIB_TRY(gb_set_caches(settings->caches));
    CLI_TRY(choose_products(settings, result, go_on));
    if (!*go_on)
        return GB_SUCCESS;
    if (is_open(session, settings))
        return gb_cli_session_set_mode(settings, false); /* the mode may be another */
    LIB_TRY(gb_engine_get_count(settings->engine_kind, &devices));
    if (devices == 0) {
        gb_cli_result_set(result, CASE_SKIPPED, "%s",
                settings->engine_kind == GB_ENGINE_GPU ? no_device : "no such engine");
        *go_on = false;
        return GB_SUCCESS;
    }
    gb_cli_session_free(session);
    set_threads(settings);
    CLI_TRY(gb_cli_session_set_mode(settings, false));
    gb_status status = open_any(session, settings);
    if (status == GB_UNIMPLEMENTED) {
        gb_cli_result_set(result, CASE_SKIPPED, "%s", gb_last_error());
        gb_cli_session_free(session);
        *go_on = false;
        return GB_SUCCESS;
    }
    LIB_TRY(status);
    session->engine_kind = settings->engine_kind;
    session->engine_index = settings->engine_index;
    session->threads = settings->threads;
    session->memory_kind = settings->memory_kind;
    session->out_of_order = settings->out_of_order;
    return GB_SUCCESS;
}

void gb_cli_list_devices(void)
{
    static const gb_engine_kind kinds[] = {GB_ENGINE_CPU, GB_ENGINE_GPU, GB_ENGINE_TEST};
    size_t n_gpus = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t count = 0;
        gb_engine_get_count(kinds[k], &count);
        n_gpus += kinds[k] == GB_ENGINE_GPU ? count : 0;
        for (size_t i = 0; i < count; i++) {
            gb_engine *engine = NULL;
            gb_status status = gb_engine_create(&engine, kinds[k], i);
            printf("%s:%zu %s\n", gb_engine_kind_name(kinds[k]), i,
                    status == GB_SUCCESS ? gb_engine_get_description(engine) : gb_last_error());
            gb_engine_destroy(engine);
        }
    }
    if (n_gpus == 0)
        printf("%s\n", no_device);
}
