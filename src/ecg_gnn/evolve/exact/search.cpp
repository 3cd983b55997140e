// Candidates for nearest neighbours, from tiles of approximate scores.
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
#include <cstdint>

namespace {

constexpr int kChunk = 32;  // scores compared at once before any is looked at
constexpr int64_t kColumnsAtATime = 128;

struct Candidate {
  float value;
  int32_t id;
};

struct Lists {
  int64_t k;
  int64_t room;
  float* best;            // [N, k] a heap, the smallest in front
  Candidate* candidates;  // [N, room]
  int32_t* count;         // [N]
  float* limit;           // [N] nobody above it is missing
  const float* slack;     // [N]
};

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

// Offers one row of a tile: its scores to the row itself or, `across`, the row to the
// columns, which are rows as well.
template <bool across>
void scan(const Lists& lists, const float* scores, int64_t columns, int64_t row,
          int64_t first_column) {
  const float* limit = lists.limit + (across ? first_column : row);
  const auto reaches = [=](int64_t c) { return scores[c] >= limit[across ? c : 0]; };
  const auto look = [&](int64_t from, int64_t to) {
    for (int64_t c = from; c < to; ++c)
      if (reaches(c))
        offer(lists, across ? first_column + c : row, scores[c],
              across ? row : first_column + c);
  };
  int64_t c = 0;
  for (; c + kChunk <= columns; c += kChunk) {
    int hit = 0;
    for (int j = 0; j < kChunk; ++j) hit |= reaches(c + j);
    if (hit) look(c, c + kChunk);
  }
  look(c, columns);
}

}  // namespace

// A tile of scores [rows, columns] for its rows and, unless it lies on the diagonal,
// for its columns: other nodes, so that no thread need wait in between.
extern "C" void ecg_offer_tile(int64_t k, int64_t room, float* best,
                               Candidate* candidates, int32_t* count, float* limit,
                               const float* slack, const float* scores,
                               int64_t first_row, int64_t rows, int64_t first_column,
                               int64_t columns, int threads) {
  const Lists lists{k, room, best, candidates, count, limit, slack};
  const int64_t across = first_row == first_column ? 0 : columns;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(dynamic, 16) nowait
    for (int64_t i = 0; i < rows; ++i)
      scan<false>(lists, scores + i * columns, columns, first_row + i, first_column);
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t c = 0; c < across; c += kColumnsAtATime) {
      const int64_t width = std::min(kColumnsAtATime, columns - c);
      for (int64_t i = 0; i < rows; ++i)
        scan<true>(lists, scores + i * columns + c, width, first_row + i,
                   first_column + c);
    }
  }
}
