/* The events of schemas/telemetry.dtd as LTTng-UST tracepoints. LTTng-UST stamps each event. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER metatf_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    metatf_bench,
    three,
    LTTNG_UST_TP_ARGS(uint64_t, address_arg, uint32_t, size_arg, uint16_t, cpu_arg),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, address, address_arg)
        lttng_ust_field_integer(uint32_t, size, size_arg)
        lttng_ust_field_integer(uint16_t, cpu, cpu_arg)
    )
)

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    metatf_bench, three, metatf_bench, stamped,
    LTTNG_UST_TP_ARGS(uint64_t, address_arg, uint32_t, size_arg, uint16_t, cpu_arg)
)

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    metatf_bench, three, metatf_bench, off,
    LTTNG_UST_TP_ARGS(uint64_t, address_arg, uint32_t, size_arg, uint16_t, cpu_arg)
)

LTTNG_UST_TRACEPOINT_EVENT(
    metatf_bench,
    said,
    LTTNG_UST_TP_ARGS(const char *, text_arg),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_string(text, text_arg))
)

#endif

#include <lttng/tracepoint-event.h>
