// Nearest neighbours from tiles of approximate scores, and their exact comparison.
//
// Every row keeps the columns within `slack` (more than the error bound) of the k-th best
// score so far. How many these are depends on the data: k and a few more as a rule,
// hundreds where scores hardly differ. Should they not fit, the worse half goes, and the
// limit rises to the best of what went. So nobody who is not kept has a score above the
// limit, and where the k-th exact similarity exceeds that by the error bound, the k
// best are proven. Real errors being far below their bound, that is nearly everywhere.
//
// Every row is written by one thread, which sees its scores in order: the result does
// not depend on the number of threads. No infinities: fast maths would not see them.

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <vector>

namespace {

constexpr int kChunk = 32;  // scores compared at once before any is looked at
constexpr int64_t kColumnsAtATime = 128;

struct Candidate {
  float value;
  int32_t id;
};

}  // namespace

extern "C" struct Lists {
  int64_t k;
  int64_t room;
  float* best;            // [N, k] a heap, the smallest in front
  Candidate* candidates;  // [N, room]
  int32_t* count;         // [N]
  float* limit;           // [N] nobody above it is missing
  const float* slack;     // [N]
};

namespace {

// The smallest of a heap gives way to `value`.
void replace_smallest(float* heap, int64_t size, float value) {
  int64_t place = 0;
  for (int64_t child; (child = 2 * place + 1) < size; place = child) {
    if (child + 1 < size && heap[child + 1] < heap[child]) ++child;
    if (heap[child] >= value) break;
    heap[place] = heap[child];
  }
  heap[place] = value;
}

bool better(const Candidate& a, const Candidate& b) { return a.value > b.value; }

int64_t drop_hopeless(const Lists& lists, int64_t row) {
  Candidate* first = lists.candidates + row * lists.room;
  const float limit = lists.limit[row];
  Candidate* end = std::remove_if(first, first + lists.count[row],
                                  [=](const Candidate& c) { return c.value < limit; });
  return lists.count[row] = static_cast<int32_t>(end - first);
}

void make_room(const Lists& lists, int64_t row) {
  // Half the room: otherwise the next few would call again.
  const int64_t half = lists.room / 2, count = drop_hopeless(lists, row);
  if (count <= half) return;
  Candidate* first = lists.candidates + row * lists.room;
  std::nth_element(first, first + half, first + count, better);
  lists.limit[row] = std::max(lists.limit[row], first[half].value);
  lists.count[row] = static_cast<int32_t>(half);
}

void offer(const Lists& lists, int64_t row, float value, int64_t id) {
  if (id == row) return;
  if (lists.count[row] == lists.room) make_room(lists, row);
  if (value < lists.limit[row]) return;
  lists.candidates[row * lists.room + lists.count[row]++] = {value,
                                                           static_cast<int32_t>(id)};
  float* heap = lists.best + row * lists.k;
  if (value <= heap[0]) return;
  replace_smallest(heap, lists.k, value);
  lists.limit[row] = std::max(lists.limit[row], heap[0] - lists.slack[row]);
}

// A row sees the columns of a tile.
void scan_row(const Lists& lists, const float* scores, int64_t columns, int64_t row,
              int64_t first_column) {
  int64_t c = 0;
  for (; c + kChunk <= columns; c += kChunk) {
    const float limit = lists.limit[row];
    int hit = 0;
    for (int j = 0; j < kChunk; ++j) hit |= scores[c + j] >= limit;
    if (!hit) continue;
    for (int64_t j = c; j < c + kChunk; ++j)
      if (scores[j] >= lists.limit[row]) offer(lists, row, scores[j], first_column + j);
  }
  for (; c < columns; ++c)
    if (scores[c] >= lists.limit[row]) offer(lists, row, scores[c], first_column + c);
}

// Columns, which are rows as well, see one row of a tile.
void scan_columns(const Lists& lists, const float* scores, int64_t columns,
                  int64_t first_column, int64_t row) {
  const float* limit = lists.limit + first_column;
  int64_t c = 0;
  for (; c + kChunk <= columns; c += kChunk) {
    int hit = 0;
    for (int j = 0; j < kChunk; ++j) hit |= scores[c + j] >= limit[c + j];
    if (!hit) continue;
    for (int64_t j = c; j < c + kChunk; ++j)
      if (scores[j] >= limit[j]) offer(lists, first_column + j, scores[j], row);
  }
  for (; c < columns; ++c)
    if (scores[c] >= limit[c]) offer(lists, first_column + c, scores[c], row);
}

}  // namespace

extern "C" {

// A tile of scores [rows, columns] for its rows and, unless it lies on the diagonal,
// for its columns: other nodes, so that no thread need wait in between.
void ecg_offer_tile(const Lists* lists, const float* scores, int64_t first_row,
                    int64_t rows, int64_t first_column, int64_t columns, int threads) {
  const int64_t across = first_row == first_column ? 0 : columns;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(dynamic, 16) nowait
    for (int64_t i = 0; i < rows; ++i)
      scan_row(*lists, scores + i * columns, columns, first_row + i, first_column);
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t c = 0; c < across; c += kColumnsAtATime) {
      const int64_t width = std::min(kColumnsAtATime, columns - c);
      for (int64_t i = 0; i < rows; ++i)
        scan_columns(*lists, scores + i * columns + c, width, first_column + c,
                     first_row + i);
    }
  }
}

struct Rows {
  int64_t num_nodes;
  int64_t width;
  const int32_t* grid;        // [N, width]
  const double* half_square;  // [N], null unless Euclidean
  double step;                // what a one of the grid stands for
  const double* bound;        // [N] the error of a score
  double offset;              // similarity - score, within the bound
};

struct Decision {
  int64_t* nodes;   // [n, room] candidates, ascending, the number of nodes for none
  double* scores;   // [n, room] exact similarities; both written where tied only
  double* kth;      // [n] the k-th of them
  uint8_t* sure;    // [n] nobody else reaches it
  uint8_t* tied;    // [n] more than one could be the k-th
  int64_t* best;    // [n, k] the k best, ascending; unless tied
};

}  // extern "C"

namespace {

struct Scored {
  double score;
  int64_t id;
};

// Integers below 2^53 in every partial sum: exact in any order.
double product(const double* own, const int32_t* other, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += own[d] * other[d];
  return sum;
}

Scored score(const Rows& rows, const double* own, int64_t row, int64_t id) {
  double score = product(own, rows.grid + id * rows.width, rows.width);
  score *= rows.step * rows.step;
  if (rows.half_square) score -= rows.half_square[row] + rows.half_square[id];
  return {score, id};
}

// The k best by their scores first: their exact similarities rule out most others.
void score_candidates(const Lists& lists, const Rows& rows, int64_t row,
                      std::vector<double>& own, std::vector<Scored>& scored) {
  const int32_t* grid = rows.grid + row * rows.width;
  own.assign(grid, grid + rows.width);
  scored.clear();
  Candidate* first = lists.candidates + row * lists.room;
  Candidate* end = first + lists.count[row];
  std::nth_element(first, first + (lists.k - 1), end, better);
  double floor = DBL_MAX;
  for (Candidate* c = first; c < first + lists.k; ++c) {
    scored.push_back(score(rows, own.data(), row, c->id));
    floor = std::min(floor, scored.back().score);
  }
  const double reach = rows.offset + rows.bound[row];
  for (Candidate* c = first + lists.k; c < end; ++c)
    if (c->value + reach >= floor) scored.push_back(score(rows, own.data(), row, c->id));
}

void write_tied(const Lists& lists, const Rows& rows, std::vector<Scored>& scored,
                int64_t* nodes, double* scores) {
  std::sort(scored.begin(), scored.end(),
            [](const Scored& a, const Scored& b) { return a.id < b.id; });
  for (size_t i = 0; i < static_cast<size_t>(lists.room); ++i) {
    const bool real = i < scored.size();
    nodes[i] = real ? scored[i].id : rows.num_nodes;
    scores[i] = real ? scored[i].score : -DBL_MAX;
  }
}

void decide_row(const Lists& lists, const Rows& rows, const Decision& out, int64_t row,
                int64_t i, std::vector<double>& own, std::vector<Scored>& scored) {
  const int64_t k = lists.k;
  int64_t* best = out.best + i * k;
  drop_hopeless(lists, row);
  out.sure[i] = out.tied[i] = false;
  const double kth_score = lists.best[row * k] + rows.offset, bound = rows.bound[row];
  const double others = lists.limit[row] + rows.offset + bound;
  if (kth_score <= others) {  // to prove anything, an error would have to help
    out.kth[i] = kth_score - bound;
    return;
  }
  score_candidates(lists, rows, row, own, scored);
  std::nth_element(scored.begin(), scored.begin() + (k - 1), scored.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  const double kth = scored[k - 1].score;
  const auto end = std::partition(scored.begin(), scored.end(),
                                  [=](const Scored& c) { return c.score >= kth; });
  out.kth[i] = kth;
  out.sure[i] = kth > others;
  out.tied[i] = end - scored.begin() > k;
  if (out.tied[i]) {
    write_tied(lists, rows, scored, out.nodes + i * lists.room,
               out.scores + i * lists.room);
    return;
  }
  for (int64_t j = 0; j < k; ++j) best[j] = scored[j].id;
  std::sort(best, best + k);
}

}  // namespace

extern "C" {

// Compare the candidates of the rows [first, first + n) exactly.
void ecg_decide(const Lists* lists, const Rows* rows, const Decision* out,
                int64_t first, int64_t n, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<double> own;
    std::vector<Scored> scored;
#pragma omp for schedule(dynamic, 16)
    for (int64_t i = 0; i < n; ++i)
      decide_row(*lists, *rows, *out, first + i, i, own, scored);
  }
}

}  // extern "C"
