/* Templates: two or three documents, with byte FF between them (which no JSON has). A valid first one may make a template; what fits a
 * template is valid, and the checks of tests/c/test_template.c hold.
 */
#define main test_main
#include "../c/test_template.c"
#undef main
#include "cuts.h"

/* A document in memory of its own, and where the next one begins. */
static uint8_t *next_document(const uint8_t **p, const uint8_t *end, size_t *n)
{
    const uint8_t *start = *p, *stop = start < end ? memchr(start, 0xFF, (size_t)(end - start)) : NULL;
    if (stop == NULL) stop = end;
    *p = stop < end ? stop + 1 : end;
    *n = (size_t)(stop - start);
    return exact(start, *n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing = 0;
    const uint8_t *p = size ? data : &nothing, *end = p + size;
    size_t an, bn, cn;
    uint8_t *a = next_document(&p, end, &an), *b = next_document(&p, end, &bn), *c = next_document(&p, end, &cn);
    tw_template one, both;
    escaped_keys = 1;
    if (valid(a, an) && tw_template_make(&one, NULL, &aim, a, an) == 1) {
        demand(fits(&one, NULL, a, an), "a document that does not fit its own template");
        fits(&one, NULL, b, bn);
        if (valid(b, bn) && tw_template_make(&both, &one, &aim, b, bn) == 1) {
            tw_span found[TW_TEMPLATE_HOLES];
            tw_fit fit;
            demand(fits(&both, NULL, a, an) && fits(&both, NULL, b, bn), "a document that does not fit the template of two");
            demand(tw_template_fit(&both, NULL, found, b, bn, &fit), "it fits once and not again");
            demand(fits(&both, found, b, bn), "a document does not fit with its own values");
            fits(&both, NULL, c, cn);
            fits(&both, found, c, cn);
            tw_template_free(&both);
        }
        tw_template_free(&one);
    }
    demand(failed == 0, "see above");
    free(a);
    free(b);
    free(c);
    return 0;
}
