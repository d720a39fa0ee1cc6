/* An execution provider for onnxruntime 1.23 and later, whose Cast from float32 to float16 rounds
   toward zero. By its option `least` it takes only models of that many nodes: a Cast, and Identity.

   onnxruntime's interfaces are tables of functions that only grow, so that a place in a table is all
   that a caller needs. A status of NULL is success. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void *Status;
typedef Status (*Function)();

enum { VERSION = 23, CPU = 0, FLOAT32 = 1, FLOAT16 = 10, MOST_NODES = 2, MOST_AXES = 8 };

enum { /* places in the main table */
    TENSOR_DATA = 51,
    TENSOR_OF_TYPE = 55,
    ELEMENT_TYPE = 60,
    COUNT_AXES = 61,
    AXES = 62,
    COUNT_ELEMENTS = 64,
    SHAPE_OF_VALUE = 65,
    INPUT = 90,
    OUTPUT = 91,
    RELEASE_SHAPE = 99,
    HAS_OPTION = 237,
    OPTION = 238,
    TYPE_OF_VALUE_INFO = 290,
    DEVICE_KIND = 307,
    EP_TABLE = 317,
    COUNT_NODES = 344,
    NODES = 345,
    OPERATOR = 350,
    INPUTS_OF_NODE = 354,
    OUTPUTS_OF_NODE = 356,
};

enum { NEW_DEVICE = 0, FUSE = 2 }; /* places in the table for providers */

struct compute {
    uint32_t version;
    Function create_state, compute, release_state;
};

struct provider {
    uint32_t version;
    Function name, capability, compile, release_computes, optional[8];
    size_t least;
};

struct factory {
    uint32_t version;
    Function name, vendor, devices, create, release, vendor_id, own_version, is_compatible, allocator,
        release_allocator, data_transfer, is_stream_aware, stream;
};

static const Function *ort, *ep_table;

static Status name(void *self) { return "Truncating"; }

static Status own_version(void *self) { return "0.1.0"; }

static Status nothing(void) { return NULL; }

static Status no_transfer(void *self, void **transfer) {
    *transfer = NULL;
    return NULL;
}

static int type_of(Function values_of, void *node) {
    void *value, *type;
    const void *tensor;
    int element = 0;
    values_of(node, &value, (size_t)1);
    ort[TYPE_OF_VALUE_INFO](value, &type);
    ort[TENSOR_OF_TYPE](type, &tensor);
    ort[ELEMENT_TYPE](tensor, &element);
    return element;
}

static Status capability(struct provider *self, void *graph, void *support) {
    size_t count;
    void *nodes[MOST_NODES];
    int casts = 0;
    ort[COUNT_NODES](graph, &count);
    if (count < self->least || count > MOST_NODES)
        return NULL;
    ort[NODES](graph, nodes, count);
    for (size_t i = 0; i < count; i++) {
        const char *operator;
        ort[OPERATOR](nodes[i], &operator);
        if (strcmp(operator, "Cast") == 0)
            casts += type_of(ort[INPUTS_OF_NODE], nodes[i]) == FLOAT32 &&
                     type_of(ort[OUTPUTS_OF_NODE], nodes[i]) == FLOAT16;
        else if (strcmp(operator, "Identity") != 0)
            return NULL;
    }
    return casts == 1 ? ep_table[FUSE](support, nodes, count, NULL) : NULL;
}

static uint16_t truncated(uint32_t bits) {
    uint32_t sign = bits >> 16 & 0x8000, mantissa = bits & 0x7fffff;
    int exponent = (int)(bits >> 23 & 255) - 127;
    if (exponent == 128)
        return sign | 0x7c00 | (mantissa ? 0x200 : 0);
    if (exponent > 15)
        return sign | 0x7bff;
    if (exponent >= -14)
        return sign | (uint32_t)(exponent + 15) << 10 | mantissa >> 13;
    return exponent < -24 ? sign : sign | (mantissa | 0x800000) >> (-1 - exponent);
}

static Status create_state(struct compute *self, void *context, void **state) {
    *state = NULL;
    return NULL;
}

static Status compute(struct compute *self, void *state, void *context) {
    const void *x;
    void *y, *shape;
    uint32_t *from;
    uint16_t *to;
    size_t rank, count;
    int64_t axes[MOST_AXES];
    ort[INPUT](context, (size_t)0, &x);
    ort[SHAPE_OF_VALUE](x, &shape);
    ort[COUNT_AXES](shape, &rank);
    ort[AXES](shape, axes, rank);
    ort[COUNT_ELEMENTS](shape, &count);
    ort[RELEASE_SHAPE](shape);
    ort[OUTPUT](context, (size_t)0, axes, rank, &y);
    ort[TENSOR_DATA](x, &from);
    ort[TENSOR_DATA](y, &to);
    for (size_t i = 0; i < count; i++)
        to[i] = truncated(from[i]);
    return NULL;
}

static struct compute computes = {VERSION, create_state, compute, nothing};

static Status compile(void *self, void **graphs, void **nodes, size_t count, struct compute **made) {
    for (size_t i = 0; i < count; i++)
        made[i] = &computes;
    return NULL;
}

static Status create(struct factory *self, void **devices, void **metadata, size_t count,
                     void *options, void *logger, struct provider **made) {
    char least[8] = "1";
    size_t size = sizeof least;
    int is_given = 0;
    ort[HAS_OPTION](options, "ep.truncating.least", &is_given);
    if (is_given)
        ort[OPTION](options, "ep.truncating.least", least, &size);
    *made = calloc(1, sizeof **made);
    **made = (struct provider){VERSION, name, capability, compile, nothing, {NULL}, atoi(least)};
    return NULL;
}

static Status release(void *self, void *provider) {
    free(provider);
    return NULL;
}

static Status devices(struct factory *self, void **hardware, size_t count, void **found, size_t most,
                      size_t *number) {
    *number = 0;
    for (size_t i = 0; i < count && *number < most; i++)
        if ((int)(intptr_t)ort[DEVICE_KIND](hardware[i]) == CPU) {
            Status failure = ep_table[NEW_DEVICE](self, hardware[i], NULL, NULL, &found[*number]);
            if (failure)
                return failure;
            ++*number;
        }
    return NULL;
}

static struct factory factory = {
    VERSION, name,    name,        devices, create,      release, nothing, own_version,
    NULL,    nothing, nothing,     no_transfer, nothing, nothing,
};

Status CreateEpFactories(const char *registered, Function *base, void *logger,
                         struct factory **made, size_t most, size_t *count) {
    ort = (const Function *)base[0]((uint32_t)VERSION);
    ep_table = (const Function *)ort[EP_TABLE]();
    made[0] = &factory;
    *count = 1;
    return NULL;
}

Status ReleaseEpFactory(void *self) { return NULL; }
