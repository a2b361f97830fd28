/* Templates: what makes the next delta of a stream cheap.
 *
 * The payloads of one stream are alike but for the text they add, a counter, and values that nobody reads. A template is what
 * validated payloads had in common, with *holes* where they differ. A later payload that equals it outside the holes, and has a valid
 * value in each, is itself valid and means the same but for what stands in the holes: whether a document is valid depends on its bytes
 * alone.
 *
 * Templates are made of validated documents only, so nothing here checks the grammar of what is no hole. They hold no text of any
 * document, and never change: one may serve many turns.
 */
#ifndef TW_TEMPLATE_H
#define TW_TEMPLATE_H

#include "tw_common.h"

#define TW_TEMPLATE_BYTES 16384 /* a longer payload is not made a template */
#define TW_TEMPLATE_HOLES 255   /* nor is one with more holes */
#define TW_TEMPLATE_DEPTH 96    /* a value in a hole has at most so many levels */

/* What is wanted of an object: its fields, each whole (child NULL) or in part. What is wanted of an array is wanted of each element. */
typedef struct tw_field tw_field;
typedef struct tw_node { tw_field *fields; uint32_t n; } tw_node;
struct tw_field { const char *name; size_t len; void *key; tw_node *child; }; /* key: the sink's */

/* One step of a path: a key, or (name NULL) an index. */
typedef struct tw_step { const char *name; size_t len; uint32_t index; } tw_step;

/* What a template is made for. */
typedef struct tw_aim {
    const tw_node *wanted;
    const tw_step *path; /* to the text: a string, alone in each array around it */
    int path_len;
    const char *counter; /* the root's member that numbers the payloads, or NULL */
    size_t counter_len;
    uint32_t max_depth;  /* of a document */
} tw_aim;

enum tw_hole_kind {
    TW_HOLE_TEXT,    /* between the quotes of the text */
    TW_HOLE_COUNTER,
    TW_HOLE_SAME,    /* a wanted scalar, which has to be what it was in the payload that began the run */
    TW_HOLE_ANY      /* a value that is not wanted */
};

/* What the text in a hole is made of. */
enum tw_text_form { TW_TEXT_ANY, TW_TEXT_SHORT_ESCAPES /* and ASCII */, TW_TEXT_PLAIN /* ASCII alone */ };

/* `at`: bytes of the template before it. `room`: levels of containers that a value there may have. */
typedef struct tw_hole { uint16_t at; uint8_t kind, room; } tw_hole;

typedef struct tw_template {
    uint8_t *bytes;
    tw_hole *holes;
    uint32_t len, n;
    uint32_t same; /* holes of that kind */
} tw_template;

typedef struct tw_span { const uint8_t *p; size_t n; } tw_span;

/* What a payload that fits has in the holes. */
typedef struct tw_fit {
    tw_span text;    /* between the quotes */
    int form;        /* enum tw_text_form */
    uint64_t counter;
    int has_counter;
} tw_fit;

/* The template of one validated document (old NULL), or of that and what an old template stands for. 1: made; 0: the document does
 * not lend itself, or has another shape than the old one; -1: no memory. */
int tw_template_make(tw_template *t, const tw_template *old, const tw_aim *aim, const uint8_t *p, size_t n);
void tw_template_free(tw_template *t);

/* Does the payload fit? `same` is what has to stand in the holes of that kind, t->same of them; or `found` takes what does. */
int tw_template_fit(const tw_template *t, const tw_span *same, tw_span *found, const uint8_t *p, size_t n, tw_fit *fit);

#endif
