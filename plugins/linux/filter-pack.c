/* SPDX-License-Identifier: Apache-2.0 */
/* Runs while coffer is built: reads what libseccomp compiled, and writes a
 * smaller program that answers the same.  The unit test compares the result,
 * in a simulator, with the table that libseccomp's rules were made of. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/seccomp.h>

#include "filter-pack.h"

#define NODES_MAX 4096
#define RANGES_MAX 1024
#define ALL 0xffffffffu
#define NONE UINT32_MAX

static void
fail (const char *what)
{
  fprintf (stderr, "filter-gen: %s\n", what);
  exit (1);
}

/* ---- the graph ---------------------------------------------------------- */

/* One comparison of a word of seccomp_data, or an answer. */
struct node {
  uint16_t op;                  /* BPF_JEQ, JGT, JGE, JSET; BPF_RET */
  uint32_t offset, mask;        /* mask: only for JEQ */
  uint32_t k;
  unsigned yes, no;
  /* While a program is written. */
  int seen, loads;              /* somebody comes with another word loaded */
  uint32_t entry, loaded;       /* instructions from the end */
};

static struct node nodes[NODES_MAX];
static unsigned n_nodes;

static unsigned
node_keep (const struct node *node)
{
  unsigned i;

  for (i = 0; i < n_nodes; i++)
    if (nodes[i].op == node->op && nodes[i].offset == node->offset
        && nodes[i].mask == node->mask && nodes[i].k == node->k
        && nodes[i].yes == node->yes && nodes[i].no == node->no)
      return i;
  if (n_nodes == NODES_MAX)
    fail ("too many comparisons");
  nodes[n_nodes] = *node;
  return n_nodes++;
}

static unsigned
node_return (uint32_t k)
{
  const struct node node = { .op = BPF_RET, .k = k };

  return node_keep (&node);
}

static unsigned node_known (unsigned id, uint32_t offset, uint32_t mask,
                            uint32_t value);

/* "Any of these bits": tests of single bits, one after another, become one. */
static unsigned
node_bits (uint32_t offset, uint32_t bits, unsigned yes, unsigned no)
{
  struct node node = { .op = BPF_JSET, .offset = offset, .mask = ALL,
                       .k = bits, .yes = yes };
  const struct node *next;

  if (bits == 0)
    return no;
  no = node_known (no, offset, bits, 0);
  next = &nodes[no];
  if (yes == no)
    return no;
  node.no = no;
  if (next->op == BPF_JSET && next->offset == offset && next->yes == yes) {
    node.k |= next->k;
    node.no = next->no;
  }
  return node_keep (&node);
}

static unsigned node_compare (uint16_t op, uint32_t offset, uint32_t mask,
                              uint32_t k, unsigned yes, unsigned no);

/* The same, where those bits of that word are known to have that value. */
static unsigned
node_known (unsigned id, uint32_t offset, uint32_t mask, uint32_t value)
{
  const struct node node = nodes[id];
  unsigned yes, no;

  if (node.op == BPF_RET)
    return id;
  yes = node_known (node.yes, offset, mask, value);
  no = node_known (node.no, offset, mask, value);
  if (node.offset == offset && node.op == BPF_JSET) {
    if (value & node.k)
      return yes;
    return node_compare (BPF_JSET, offset, ALL, node.k & ~mask, yes, no);
  }
  if (node.offset == offset && node.op == BPF_JEQ) {
    if ((value & node.mask) != (node.k & mask))
      return no;
    if ((node.mask & ~mask) == 0)
      return yes;
  }
  return node_compare (node.op, node.offset, node.mask, node.k, yes, no);
}

static unsigned
node_compare (uint16_t op, uint32_t offset, uint32_t mask, uint32_t k,
              unsigned yes, unsigned no)
{
  struct node node = { .op = op, .offset = offset, .mask = mask, .k = k };

  if (yes == no)
    return yes;
  if (op == BPF_JSET)
    return node_bits (offset, mask & k, yes, no);
  if (op != BPF_JEQ && mask != ALL)
    fail ("a masked comparison that is not of equality");
  if (op == BPF_JEQ && (k & ~mask) != 0)
    return no;
  if (op == BPF_JEQ && mask != ALL && k == 0)
    return node_bits (offset, mask, no, yes);
  if (op == BPF_JEQ && mask != ALL && k == mask && (mask & (mask - 1)) == 0)
    return node_bits (offset, mask, yes, no);
  if (op == BPF_JEQ)
    yes = node_known (yes, offset, mask, k);
  if (yes == no)
    return yes;
  node.yes = yes;
  node.no = no;
  return node_keep (&node);
}

/* ---- reading a program -------------------------------------------------- */

struct reader {
  const struct sock_filter *program;
  size_t n;
  uint32_t arch, nr;
};

/* What the accumulator holds: a known value, or a word with a mask. */
struct held {
  int known;
  uint32_t value;               /* or the offset */
  uint32_t mask;
};

static int
compare_known (uint16_t op, uint32_t a, uint32_t k)
{
  switch (op) {
  case BPF_JEQ:
    return a == k;
  case BPF_JGT:
    return a > k;
  case BPF_JGE:
    return a >= k;
  default:
    return (a & k) != 0;
  }
}

static void
word_load (const struct reader *reader, uint32_t offset, struct held *held)
{
  held->known = offset <= offsetof (struct seccomp_data, arch);
  held->value = offset == offsetof (struct seccomp_data, nr) ? reader->nr
                : held->known ? reader->arch : offset;
  held->mask = ALL;
}

static unsigned
program_read (const struct reader *reader, size_t pc, struct held held)
{
  const struct sock_filter *i;
  unsigned yes, no;

  for (; pc < reader->n; pc++) {
    i = &reader->program[pc];
    switch (i->code) {
    case BPF_LD | BPF_W | BPF_ABS:
      word_load (reader, i->k, &held);
      continue;
    case BPF_ALU | BPF_AND | BPF_K:
      held.mask &= i->k;
      if (held.known)
        held.value &= i->k;
      continue;
    case BPF_JMP | BPF_JA:
      pc += i->k;
      continue;
    case BPF_RET | BPF_K:
      return node_return (i->k);
    case BPF_JMP | BPF_JEQ | BPF_K:
    case BPF_JMP | BPF_JGT | BPF_K:
    case BPF_JMP | BPF_JGE | BPF_K:
    case BPF_JMP | BPF_JSET | BPF_K:
      if (held.known) {
        pc += compare_known (BPF_OP (i->code), held.value, i->k) ? i->jt
                                                                 : i->jf;
        continue;
      }
      yes = program_read (reader, pc + 1 + i->jt, held);
      no = program_read (reader, pc + 1 + i->jf, held);
      return node_compare (BPF_OP (i->code), held.value, held.mask, i->k, yes,
                           no);
    default:
      fail ("an instruction that libseccomp does not write");
    }
  }
  fail ("a program without an end");
  return 0;
}

unsigned
pack_answer (const struct sock_filter *program, size_t n, uint32_t arch,
             uint32_t nr)
{
  const struct reader reader = { program, n, arch, nr };
  const struct held held = { 1, 0, ALL };

  return program_read (&reader, 0, held);
}

int
pack_allows (unsigned node)
{
  return nodes[node].op == BPF_RET && nodes[node].k == SECCOMP_RET_ALLOW;
}

/* ---- ranges ------------------------------------------------------------- */

struct range {
  uint32_t first;
  unsigned node;
};

static struct range ranges[RANGES_MAX];
static unsigned n_ranges;

void
pack_range (uint32_t first, unsigned node)
{
  if (n_ranges > 0 && ranges[n_ranges - 1].node == node)
    return;
  if (n_ranges == RANGES_MAX)
    fail ("too many ranges");
  ranges[n_ranges].first = first;
  ranges[n_ranges++].node = node;
}

/* ---- writing a program -------------------------------------------------- */

/* Backwards, as jumps only lead forwards: a place is counted from the end. */
static struct sock_filter written[BPF_MAXINSNS];
static uint32_t n_written;

static uint32_t
instruction (uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
  const struct sock_filter i = { code, jt, jf, k };

  if (n_written == BPF_MAXINSNS)
    fail ("a program that is too long");
  written[n_written++] = i;
  return n_written;
}

/* Where a jump can lead that is written after at most one more instruction.
 * An answer that is too far away is written again. */
static uint32_t
near (uint32_t target)
{
  const struct sock_filter *at = &written[target - 1];

  if (n_written + 1 - target < 254)
    return target;
  if (at->code == (BPF_RET | BPF_K))
    return instruction (at->code, 0, 0, at->k);
  return instruction (BPF_JMP | BPF_JA, 0, 0, n_written - target);
}

static uint32_t
jump_write (uint16_t op, uint32_t k, uint32_t yes, uint32_t no)
{
  yes = near (yes);
  no = near (no);
  return instruction (BPF_JMP | op | BPF_K, (uint8_t) (n_written - yes),
                      (uint8_t) (n_written - no), k);
}

static int
same_word (const struct node *a, const struct node *b)
{
  return a->op != BPF_RET && b->op != BPF_RET && a->offset == b->offset
         && a->mask == b->mask;
}

/* Which nodes must load their word: those that are not reached only from
 * others that hold it already. */
static void
loads_note (unsigned id, const struct node *from)
{
  struct node *node = &nodes[id];

  if (from == NULL || !same_word (from, node))
    node->loads = 1;
  if (node->seen || node->op == BPF_RET)
    return;
  node->seen = 1;
  loads_note (node->yes, node);
  loads_note (node->no, node);
}

static uint32_t node_write (unsigned id);

/* The place to go to for who holds the word of `from`. */
static uint32_t
node_place (unsigned id, const struct node *from)
{
  uint32_t entry = node_write (id);
  struct node *node = &nodes[id];

  if (from != NULL && same_word (from, node))
    return node->loaded;
  /* The nearest copy of an answer. */
  if (node->op == BPF_RET)
    node->entry = entry = near (entry);
  return entry;
}

static uint32_t
node_write (unsigned id)
{
  struct node *node = &nodes[id];
  uint32_t yes, no;

  if (node->entry != 0)
    return node->entry;
  if (node->op == BPF_RET)
    return node->entry = instruction (BPF_RET | BPF_K, 0, 0, node->k);
  yes = node_place (node->yes, node);
  no = node_place (node->no, node);
  node->entry = node->loaded = jump_write (node->op, node->k, yes, no);
  if (node->loads) {
    if (node->mask != ALL)
      instruction (BPF_ALU | BPF_AND | BPF_K, 0, 0, node->mask);
    node->entry = instruction (BPF_LD | BPF_W | BPF_ABS, 0, 0, node->offset);
  }
  return node->entry;
}

/* How the search for a range is built: of two, each a comparison and each a
 * part of all searches, by a few comparisons in a row, for single calls among
 * others of one answer, or by halves. */
struct search {
  uint32_t cost;                /* of the kernel's time */
  uint16_t middle;              /* 0: in a row */
  uint16_t usual;               /* then: the range with the others' answer */
};

#define SEARCH_MAX 256
/* One more instruction takes the kernel as long as so many steps of trying
 * the numbers, of which there are so many. */
#define INSTRUCTION_COST 45
#define NUMBERS 480
#define ROW_MAX 6

static struct search searches[SEARCH_MAX][SEARCH_MAX + 1];

static uint32_t
range_end (unsigned i)
{
  return i + 1 < n_ranges ? ranges[i + 1].first : NONE;
}

/* The numbers that the kernel tries in those ranges. */
static uint32_t
ranges_weight (unsigned from, unsigned to)
{
  uint32_t first = ranges[from].first, end = range_end (to - 1);

  first = first < NUMBERS ? first : NUMBERS;
  end = end < NUMBERS ? end : NUMBERS;
  return end - first;
}

/* The cost of asking for each single call by itself; NONE: not so. */
static uint32_t
row_cost (unsigned from, unsigned to, unsigned usual)
{
  uint32_t cost = 0, weight = ranges_weight (from, to);
  unsigned i, singles = 0;

  for (i = from; i < to; i++) {
    if (ranges[i].node == ranges[usual].node)
      continue;
    if (range_end (i) - ranges[i].first != 1 || ++singles > ROW_MAX)
      return NONE;
    cost += INSTRUCTION_COST + weight;
    weight -= ranges_weight (i, i + 1);
  }
  return cost;
}

static void
search_choose (unsigned from, unsigned to)
{
  struct search *best = &searches[from][to];
  uint32_t cost, weight = ranges_weight (from, to);
  unsigned i;

  best->cost = NONE;
  for (i = from; i < to && i < from + 2; i++) {
    cost = row_cost (from, to, i);
    if (cost < best->cost)
      *best = (struct search){ cost, 0, (uint16_t) i };
  }
  for (i = from + 1; i < to; i++) {
    cost = INSTRUCTION_COST + weight + searches[from][i].cost
           + searches[i][to].cost;
    if (cost < best->cost)
      *best = (struct search){ cost, (uint16_t) i, 0 };
  }
}

static void
searches_choose (void)
{
  unsigned size, from;

  if (n_ranges > SEARCH_MAX)
    fail ("too many ranges");
  for (size = 1; size <= n_ranges; size++)
    for (from = 0; from + size <= n_ranges; from++)
      search_choose (from, from + size);
}

static uint32_t
row_write (unsigned from, unsigned to, unsigned usual)
{
  uint32_t place = node_place (ranges[usual].node, NULL), yes;
  unsigned i;

  for (i = to; i > from; i--)
    if (ranges[i - 1].node != ranges[usual].node) {
      yes = node_place (ranges[i - 1].node, NULL);
      place = jump_write (BPF_JEQ, ranges[i - 1].first, yes, place);
    }
  return place;
}

/* With the number loaded. */
static uint32_t
search_write (unsigned from, unsigned to)
{
  const struct search *search = &searches[from][to];
  uint32_t yes, no;

  if (search->middle == 0)
    return row_write (from, to, search->usual);
  yes = search_write (search->middle, to);
  no = search_write (from, search->middle);
  return jump_write (BPF_JGE, ranges[search->middle].first, yes, no);
}

size_t
pack_finish (uint32_t arch, struct sock_filter *out, size_t max)
{
  uint32_t search, foreign;
  unsigned i;

  n_written = 0;
  for (i = 0; i < n_nodes; i++)
    nodes[i].seen = nodes[i].loads = 0, nodes[i].entry = 0;
  for (i = 0; i < n_ranges; i++)
    loads_note (ranges[i].node, NULL);
  searches_choose ();
  search = search_write (0, n_ranges);
  if (search != n_written)
    fail ("a search that is not where it was put");
  search = instruction (BPF_LD | BPF_W | BPF_ABS, 0, 0,
                        offsetof (struct seccomp_data, nr));
  foreign = instruction (BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
  jump_write (BPF_JEQ, arch, search, foreign);
  instruction (BPF_LD | BPF_W | BPF_ABS, 0, 0,
               offsetof (struct seccomp_data, arch));
  if (n_written > max)
    fail ("a program that is too long");
  for (i = 0; i < n_written; i++)
    out[i] = written[n_written - 1 - i];
  n_ranges = 0;
  return n_written;
}
