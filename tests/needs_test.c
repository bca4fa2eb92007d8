/* SPDX-License-Identifier: MIT */
/*
 * Expressions made at random, over nodes made at random, against somebody who never reads them.
 *
 * A tree is drawn, written down as an expression (as people may: either side, capital letters, other units, parentheses
 * that nobody needs), and evaluated here on what the nodes were drawn to be. What the compiled expression selects must
 * be the same, and so must what its canonical text selects.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/random.h"
#include "sched/need.h"
#include "tap.h"

enum { NODES = 150, ROUNDS = 500, TREE_MAX = 64, LEAVES_MAX = 24 };

/* ---- nodes, as they were drawn ---- */

struct model {
    unsigned cpu, nic; /* places */
    bool dedicated;
    unsigned role;
    unsigned labels;
    bool reports;
    unsigned mib, processors, mbit;
    unsigned kernel[3];
    unsigned arch; /* place; ARCHS: not known */
};

static const char *const cpus[] = {"500MHZ", "1GHZ", "2GHZ", "3GHZ"};
static const char *const nics[] = {"FAST", "SLOW"};
static const char *const roles[] = {"compute", "service", "administration"};
static const char *const labels[] = {"big", "new", "rack-1"};
static const char *const archs[] = {"x86_64", "aarch64", "HP PA"};
enum { CPUS = 4, NICS = 2, ROLES = 3, LABELS = 3, ARCHS = 3 };

static struct model models[NODES];
static struct traits table;
static struct random chance;

static unsigned below(unsigned n) {
    return (unsigned)random_below(&chance, n);
}

static void say(uint32_t node, const char *name, uint64_t value) {
    uint64_t storage[8];
    struct nodeset one;
    nodeset_init(&one, NODES, storage);
    nodeset_add(&one, node);
    traits_say(&table, &one, (uint32_t)traits_find(&table, name), value);
}

static void define(const char *name, uint8_t operators, const char *const *values, unsigned count) {
    CHECK(traits_define(&table, name, operators) > 0);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(traits_define_value(&table, values[i]), i);
}

static void draw_node(uint32_t n) {
    struct model *m = &models[n];
    *m = (struct model){.cpu = below(CPUS), .nic = below(NICS), .role = below(ROLES)};
    m->dedicated = below(2);
    m->labels = below(1 << LABELS);
    m->reports = below(5) > 0;
    m->mib = below(6) * 512;
    m->processors = below(6);
    m->mbit = below(4) * 500;
    m->arch = below(ARCHS + 1);
    for (int i = 0; i < 3; i++)
        m->kernel[i] = below(3) + (i == 0 ? 5 : 0);
    say(n, "CPU", m->cpu);
    say(n, "NIC", m->nic);
    say(n, "ROLE", m->role);
    say(n, "DEDICATED", m->dedicated);
    say(n, "LABELS", m->labels);
    struct traits_report r = traits_report_empty();
    if (!m->reports)
        return;
    r.values[TRAITS_MEMORY] = (uint64_t)m->mib * 1024 * 1024;
    r.values[TRAITS_PROCESSORS] = m->processors;
    r.values[TRAITS_NETWORK] = (uint64_t)m->mbit * 1000000;
    r.values[TRAITS_KERNEL] =
        (uint64_t)m->kernel[0] << 48 | (uint64_t)m->kernel[1] << 32 | (uint64_t)m->kernel[2] << 16;
    if (m->arch < ARCHS)
        traits_report_text(&r, TRAITS_ARCH, archs[m->arch]);
    traits_hear(&table, n, &r);
}

static void draw_nodes(void) {
    traits_clear(&table);
    define("CPU", (1 << TRAITS_OPERATORS) - 1, cpus, CPUS);
    define("NIC", 1 << TRAITS_IS | 1 << TRAITS_IS_NOT, nics, NICS);
    for (unsigned i = 0; i < LABELS; i++)
        CHECK_EQ(traits_label(&table, labels[i]), i);
    for (uint32_t n = 0; n < NODES; n++) {
        traits_forget(&table, n);
        draw_node(n);
    }
}

/* ---- trees ---- */

enum sort { AND, OR, NOT, LEAF };
enum what { CPU, NIC, DEDICATED, ROLE, LABEL, MEMORY, PROCESSORS, NETWORK, KERNEL, ARCH, WHATS };

static const char *const names[WHATS] = {"CPU",    "NIC",        "DEDICATED", "ROLE",   "LABELS",
                                         "MEMORY", "PROCESSORS", "NETWORK",   "KERNEL", "ARCH"};
static const bool ordered[WHATS] = {
    [CPU] = true, [MEMORY] = true, [PROCESSORS] = true, [NETWORK] = true, [KERNEL] = true};
static const char *const signs[] = {"=", "!=", "<", "<=", ">", ">="};
static const int turned[] = {0, 1, 4, 5, 2, 3}; /* seen from the other side */

struct tree {
    enum sort sort;
    int left, right;
    enum what what;
    int sign;
    unsigned value;
    unsigned parts[3], part_count;
};

static struct tree trees[TREE_MAX];
static int tree_count, leaf_count;

static int draw_leaf(void) {
    struct tree *t = &trees[tree_count];
    *t = (struct tree){.sort = LEAF, .what = (enum what)below(WHATS)};
    static const unsigned ends[WHATS] = {CPUS, NICS, 2, ROLES, LABELS, 6, 6, 4, 1, ARCHS};
    t->sign = (int)below(ordered[t->what] ? 6 : 2);
    t->value = below(ends[t->what]);
    t->value *= t->what == MEMORY ? 512 : t->what == NETWORK ? 500 : 1;
    t->part_count = 1 + below(3);
    for (unsigned i = 0; i < 3; i++)
        t->parts[i] = below(3) + (i == 0 ? 5 : 0);
    leaf_count++;
    return tree_count++;
}

static int draw_tree(unsigned depth) {
    enum sort sort = depth == 0 || leaf_count >= LEAVES_MAX || tree_count > TREE_MAX - 16
                         ? LEAF
                         : (enum sort)below(4);
    if (sort == LEAF)
        return draw_leaf();
    int here = tree_count++;
    int left = draw_tree(depth - 1), right = sort == NOT ? left : draw_tree(depth - 1);
    trees[here] = (struct tree){.sort = sort, .left = left, .right = right};
    return here;
}

/* ---- its truth ---- */

static bool holds(int sign, int order) { /* of the node's value to the one that is written */
    switch (sign) {
    case 0:
        return order == 0;
    case 1:
        return order != 0;
    case 2:
        return order < 0;
    case 3:
        return order <= 0;
    case 4:
        return order > 0;
    default:
        return order >= 0;
    }
}

static int order_of(unsigned a, unsigned b) {
    return a < b ? -1 : a > b;
}

static bool leaf_holds(const struct tree *t, const struct model *m) {
    int order = 0;
    switch (t->what) {
    case CPU:
        return holds(t->sign, order_of(m->cpu, t->value));
    case NIC:
        return holds(t->sign, order_of(m->nic, t->value));
    case DEDICATED:
        return holds(t->sign, order_of(m->dedicated, t->value));
    case ROLE:
        return holds(t->sign, order_of(m->role, t->value));
    case LABEL:
        return (m->labels >> t->value & 1) == (t->sign == 0);
    case MEMORY:
        return m->reports && holds(t->sign, order_of(m->mib, t->value));
    case PROCESSORS:
        return m->reports && holds(t->sign, order_of(m->processors, t->value));
    case NETWORK:
        return m->reports && holds(t->sign, order_of(m->mbit, t->value));
    case KERNEL:
        for (unsigned i = 0; i < t->part_count && order == 0; i++)
            order = order_of(m->kernel[i], t->parts[i]);
        return m->reports && holds(t->sign, order);
    default:
        return m->reports && m->arch < ARCHS && holds(t->sign, order_of(m->arch, t->value));
    }
}

static bool tree_holds(int at, const struct model *m) {
    const struct tree *t = &trees[at];
    if (t->sort == LEAF)
        return leaf_holds(t, m);
    if (t->sort == NOT)
        return !tree_holds(t->left, m);
    bool left = tree_holds(t->left, m), right = tree_holds(t->right, m);
    return t->sort == AND ? left && right : left || right;
}

/* ---- its text ---- */

static char written[8192];
static struct text out;

static void blank(void) {
    for (unsigned i = below(3); i > 0; i--)
        text_char(&out, ' ');
}

static void write_word(const char *word) {
    unsigned manner = below(3);
    for (; *word != '\0'; word++)
        text_char(&out, manner == 0   ? *word
                        : manner == 1 ? (char)tolower((unsigned char)*word)
                                      : (char)toupper((unsigned char)*word));
}

static void write_quoted(const char *word) {
    const char *quote = below(2) ? "\"" : "'";
    bool needed = strchr(word, ' ') != NULL || below(3) == 0;
    text_str(&out, needed ? quote : "");
    write_word(word);
    text_str(&out, needed ? quote : "");
}

static void write_memory(unsigned mib) {
    static const char *const units[] = {"", "M", "MB", "MiB", "mb"};
    if (mib % 1024 == 0 && below(2)) {
        text_u64(&out, mib / 1024);
        text_str(&out, below(2) ? "GiB" : "G");
    } else if (below(4) == 0) {
        text_u64(&out, mib / 1024);
        text_str(&out, mib % 1024 ? ".5GB" : ".0GB");
    } else {
        text_u64(&out, mib);
        text_str(&out, units[below(5)]);
    }
}

static void write_network(unsigned mbit) {
    static const char *const units[] = {"Mbit", "Mbit/s", "mbps", "M"};
    if (mbit % 1000 == 0 && below(2)) {
        text_u64(&out, mbit / 1000);
        text_str(&out, "Gbit");
    } else {
        text_u64(&out, mbit);
        text_str(&out, units[below(4)]);
    }
}

static void write_value(const struct tree *t) {
    static const char *const flags[] = {"FALSE", "TRUE", "NO", "YES"};
    switch (t->what) {
    case CPU:
        write_quoted(cpus[t->value]);
        break;
    case NIC:
        write_quoted(nics[t->value]);
        break;
    case DEDICATED:
        write_quoted(flags[t->value + 2 * below(2)]);
        break;
    case ROLE:
        write_quoted(roles[t->value]);
        break;
    case LABEL:
        write_quoted(labels[t->value]);
        break;
    case MEMORY:
        write_memory(t->value);
        break;
    case NETWORK:
        write_network(t->value);
        break;
    case KERNEL:
        for (unsigned i = 0; i < t->part_count; i++) {
            text_str(&out, i > 0 ? "." : "");
            text_u64(&out, t->parts[i]);
        }
        text_str(&out, t->part_count == 3 && below(2) ? "-13-amd64" : "");
        break;
    case ARCH:
        write_quoted(archs[t->value]);
        break;
    default:
        text_u64(&out, t->value);
    }
}

static void write_leaf(const struct tree *t) {
    if (t->what == DEDICATED && t->sign == 0 && t->value == 1 && below(2)) {
        write_word("dedicated");
        return;
    }
    bool turn = below(3) == 0;
    const char *sign = signs[turn ? turned[t->sign] : t->sign];
    if (turn)
        write_value(t);
    else
        write_word(names[t->what]);
    blank();
    text_str(&out, strcmp(sign, "=") == 0 && below(2) ? "==" : sign);
    blank();
    if (turn)
        write_word(names[t->what]);
    else
        write_value(t);
}

/* What binds less than `least` stands in parentheses: comma 0, or 1, and 2, not 3. */
static void write_tree(int at, int least) {
    const struct tree *t = &trees[at];
    bool comma = t->sort == AND && below(2);
    int mine = t->sort == LEAF || t->sort == NOT ? 3 : t->sort == OR ? 1 : comma ? 0 : 2;
    bool parentheses = mine < least || below(8) == 0;
    text_str(&out, parentheses ? "(" : "");
    blank();
    if (t->sort == LEAF) {
        write_leaf(t);
    } else if (t->sort == NOT) {
        text_str(&out, below(2) ? "!" : "not ");
        write_tree(t->left, 3);
    } else {
        static const char *const ands[] = {"&&", " and ", " AND "}, *const ors[] = {"||", " or ",
                                                                                    " Or "};
        write_tree(t->left, mine);
        blank();
        text_str(&out, comma ? "," : t->sort == AND ? ands[below(3)] : ors[below(3)]);
        write_tree(t->right, mine); /* all of these may be taken from the left or from the right */
    }
    blank();
    text_str(&out, parentheses ? ")" : "");
}

/* ---- both ---- */

static bool agree(const char *text, int root) {
    static uint64_t storage[64];
    struct nodeset set;
    struct need need;
    struct mistake mistake;
    if (need_compile(&need, &table, text, &mistake) < 0) {
        printf("# %s\n# %u: %s\n", text, mistake.column, mistake.words);
        return false;
    }
    nodeset_init(&set, NODES, storage);
    need_select(&need, &table, &set);
    for (uint32_t n = 0; n < NODES; n++) {
        bool should = tree_holds(root, &models[n]);
        if (nodeset_has(&set, n) == should && need_match(&need, &table, n) == should)
            continue;
        printf("# %s\n# node %u: should be %d\n", text, n, should);
        return false;
    }
    return true;
}

static void test_expressions(void) {
    static char canonical[8192], again[8192];
    unsigned some = 0, leaves = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 20 == 0)
            draw_nodes();
        tree_count = leaf_count = 0;
        int root = draw_tree(5);
        text_init(&out, written, sizeof written);
        write_tree(root, 0);
        if (!CHECK(!out.cut && agree(written, root)))
            return;
        struct need need;
        struct mistake mistake;
        need_compile(&need, &table, written, &mistake);
        need_format(&need, &table, canonical, sizeof canonical);
        if (!CHECK(agree(canonical, root)))
            return;
        need_compile(&need, &table, canonical, &mistake);
        need_format(&need, &table, again, sizeof again);
        if (!CHECK_STR(again, canonical))
            return;
        leaves += (unsigned)leaf_count;
        for (uint32_t n = 0, met = 0; n < NODES; n++) {
            met += tree_holds(root, &models[n]);
            some += n + 1 == NODES && met > 0 && met < NODES;
        }
    }
    printf("# %d expressions, %u comparisons; %u select some nodes but not all\n", ROUNDS, leaves,
           some);
    CHECK(some > ROUNDS / 2 && leaves > 3 * ROUNDS);
}

int main(void) {
    traits_init(&table, NODES, 32, malloc(traits_bytes(NODES, 32)));
    random_init(&chance, 1);
    TEST(test_expressions);
    free(table.values);
    return tap_finish();
}
