// Attention over neighbours and dropout on a CPU, forward and backward.
//
// Layouts: rows x [N, C, H], heads last, so that one vector register holds whole groups
// of heads and no sum runs across lanes; scores [N, H]; edge values [E, H] in target
// order. Query, key and value of dot-product attention lie side by side, [N, 3, C, H]:
// their rows are `stride` apart. A pattern is (offsets [N + 1], other [E]); `place` maps its edges to target
// order (null: they are in it). `kept` marks edges that DropEdge left, in target order
// (null: all). The number of heads divides kLanes.
//
// Nothing here has size [E, d]. Every output row is written by one thread, which walks
// its edges in order: the result does not depend on the number of threads.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace {

constexpr int kLanes = 16;
// Rows differ in length by orders of magnitude (hubs), so threads take them in turns.
constexpr int kRowsAtATime = 32;

struct Pattern {
  int64_t num_nodes;
  const int64_t* offsets;
  const int64_t* other;
  const int64_t* place;
  const uint8_t* kept;

  int64_t position(int64_t e) const { return place ? place[e] : e; }
  bool dropped(int64_t e) const { return kept && !kept[position(e)]; }
};

inline void prefetch(const void* row, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += 64)
    __builtin_prefetch(static_cast<const char*>(row) + byte);
}

// A value per head, repeated over the lanes.
template <int heads, class T>
inline void spread(const T* value, T* lanes) {
  for (int j = 0; j < kLanes; ++j) lanes[j] = value[j % heads];
}

// out += weight (per head) * row
template <class T>
inline void add_scaled(T* __restrict out, const T* __restrict weight,
                       const T* __restrict row, int64_t width) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes)
    for (int j = 0; j < kLanes; ++j) out[i + j] += weight[j] * row[i + j];
  for (int64_t j = 0; i + j < width; ++j) out[i + j] += weight[j] * row[i + j];
}

// product[h] = <a, b> of head h
template <int heads, class T>
inline void dots(const T* __restrict a, const T* __restrict b, int64_t width,
                 T* product) {
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lane[j] += a[i + j] * b[i + j];
  for (int64_t j = 0; i + j < width; ++j) lane[j] += a[i + j] * b[i + j];
  for (int64_t step = kLanes / 2; step >= heads; step /= 2)
    for (int64_t j = 0; j < step; ++j) lane[j] += lane[j + step];
  for (int64_t h = 0; h < heads; ++h) product[h] = lane[h];
}

template <class T>
inline T leaky(T x, T slope) {
  return x > 0 ? x : slope * x;
}

// In place, as one long loop: a loop over eight heads alone would not fill a register.
template <class T>
inline void exponentials(T* x, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) x[i] = std::exp(x[i]);
}

// Softmax over the scores [count, heads] of one row, in place; log-sum-exp to `lse`.
template <int heads, class T>
void softmax(T* score, int64_t count, T* lse) {
  T highest[kLanes], total[kLanes] = {};
  for (int64_t h = 0; h < heads; ++h) highest[h] = score[h];
  for (int64_t i = 1; i < count; ++i)
    for (int64_t h = 0; h < heads; ++h)
      highest[h] = std::max(highest[h], score[i * heads + h]);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t h = 0; h < heads; ++h) score[i * heads + h] -= highest[h];
  exponentials(score, count * heads);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t h = 0; h < heads; ++h) total[h] += score[i * heads + h];
  for (int64_t h = 0; h < heads; ++h) {
    lse[h] = highest[h] + std::log(total[h]);
    total[h] = 1 / total[h];
  }
  for (int64_t i = 0; i < count; ++i)
    for (int64_t h = 0; h < heads; ++h) score[i * heads + h] *= total[h];
}

// Scores come from `fill(u, v, s)`; messages are weighted sums of the values.
template <int heads, class T, class Fill>
void attend(const Pattern& graph, int64_t width, int64_t stride, const T* keys,
            const T* values, T* out, T* lse, int threads, const Fill& fill) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<int64_t> from;
    std::vector<T> score;
#pragma omp for schedule(dynamic, kRowsAtATime)
    for (int64_t u = 0; u < graph.num_nodes; ++u) {
      T* row = out + u * width;
      std::fill(row, row + width, T(0));
      std::fill(lse + u * heads, lse + (u + 1) * heads, T(0));
      from.clear();
      for (int64_t e = graph.offsets[u]; e < graph.offsets[u + 1]; ++e)
        if (!graph.dropped(e)) from.push_back(graph.other[e]);
      const int64_t count = from.size();
      if (count == 0) continue;
      score.resize(count * heads);
      for (int64_t i = 0; i < count; ++i) {
        if (keys && i + 2 < count)
          prefetch(keys + from[i + 2] * stride, width * sizeof(T));
        fill(u, from[i], score.data() + i * heads);
      }
      softmax<heads>(score.data(), count, lse + u * heads);
      for (int64_t i = 0; i < count; ++i) {
        if (i + 2 < count) prefetch(values + from[i + 2] * stride, width * sizeof(T));
        T weight[kLanes];
        spread<heads>(score.data() + i * heads, weight);
        add_scaled(row, weight, values + from[i] * stride, width);
      }
    }
  }
}

template <int heads, class T>
void additive_forward(const Pattern& graph, int64_t width, const T* source_score,
                      const T* target_score, const T* values, T slope, T* out, T* lse,
                      int threads) {
  attend<heads>(graph, width, width, static_cast<const T*>(nullptr), values, out, lse, threads,
                [=](int64_t u, int64_t v, T* s) {
                  const T* from = source_score + v * heads;
                  const T* to = target_score + u * heads;
                  for (int64_t h = 0; h < heads; ++h)
                    s[h] = leaky(from[h] + to[h], slope);
                });
}

template <int heads, class T>
void dot_forward(const Pattern& graph, int64_t width, int64_t stride, const T* query, const T* key,
                 const T* values, T scale, T* out, T* lse, int threads) {
  attend<heads>(graph, width, stride, key, values, out, lse, threads,
                [=](int64_t u, int64_t v, T* s) {
                  dots<heads>(query + u * stride, key + v * stride, width, s);
                  for (int64_t h = 0; h < heads; ++h) s[h] *= scale;
                });
}

// delta[u, h] = <grad[u], out[u]> of head h
template <int heads, class T>
void row_dots(int64_t num_nodes, int64_t width, const T* grad, const T* out, T* delta,
              int threads) {
#pragma omp parallel for num_threads(threads)
  for (int64_t u = 0; u < num_nodes; ++u)
    dots<heads>(grad + u * width, out + u * width, width, delta + u * heads);
}

// A few kept edges of one source: their targets, and where their gradients go. Few
// enough for the rows they read to stay in the first cache between two passes.
template <class T>
struct Batch {
  static constexpr int kSize = 16;
  int count = 0;
  int64_t target[kSize];
  T* grad[kSize];
  T score[kSize * kLanes];    // of the edges, then their attention
  T product[kSize * kLanes];  // <gradient of the target's message, value>
};

// Walks the edges of every source in batches; dropped edges get a zero gradient.
template <int heads, class T, class Begin, class Edges>
void for_each_source(const Pattern& by_source, T* edge_grad, int threads,
                     const Begin& begin, const Edges& edges) {
#pragma omp parallel for schedule(dynamic, kRowsAtATime) num_threads(threads)
  for (int64_t v = 0; v < by_source.num_nodes; ++v) {
    begin(v);
    Batch<T> batch;
    const int64_t end = by_source.offsets[v + 1];
    for (int64_t e = by_source.offsets[v]; e < end; ++e) {
      T* grad = edge_grad + by_source.position(e) * heads;
      if (by_source.dropped(e)) {
        std::fill(grad, grad + heads, T(0));
      } else {
        batch.target[batch.count] = by_source.other[e];
        batch.grad[batch.count++] = grad;
      }
      if (batch.count == Batch<T>::kSize || (e + 1 == end && batch.count)) {
        edges(v, batch);
        batch.count = 0;
      }
    }
  }
}

// Attention is recomputed from the log-sum-exp; the target's share goes by the edges.
template <int heads, class T>
void additive_backward(const Pattern& by_source, int64_t width, const T* source_score,
                       const T* target_score, const T* values, T slope, const T* grad,
                       const T* lse, const T* delta, T* grad_source, T* grad_values,
                       T* grad_edge, int threads) {
  for_each_source<heads>(
      by_source, grad_edge, threads,
      [=](int64_t v) {
        std::fill(grad_values + v * width, grad_values + (v + 1) * width, T(0));
        std::fill(grad_source + v * heads, grad_source + (v + 1) * heads, T(0));
      },
      [=](int64_t v, Batch<T>& batch) {
        for (int i = 0; i < batch.count; ++i) {
          const T* to = target_score + batch.target[i] * heads;
          const T* log_sum = lse + batch.target[i] * heads;
          for (int64_t h = 0; h < heads; ++h)
            batch.score[i * heads + h] =
                leaky(source_score[v * heads + h] + to[h], slope) - log_sum[h];
        }
        exponentials(batch.score, batch.count * heads);
        for (int i = 0; i < batch.count; ++i) {
          const int64_t u = batch.target[i];
          const T* alpha = batch.score + i * heads;
          T product[kLanes], weight[kLanes];
          dots<heads>(grad + u * width, values + v * width, width, product);
          spread<heads>(alpha, weight);
          add_scaled(grad_values + v * width, weight, grad + u * width, width);
          for (int64_t h = 0; h < heads; ++h) {
            const bool up = source_score[v * heads + h] + target_score[u * heads + h] > 0;
            const T score = alpha[h] * (product[h] - delta[u * heads + h]);
            batch.grad[i][h] = up ? score : slope * score;
            grad_source[v * heads + h] += batch.grad[i][h];
          }
        }
      });
}

template <int heads, class T>
void dot_backward(const Pattern& by_source, int64_t width, int64_t stride, const T* query, const T* key,
                  const T* values, T scale, const T* grad, const T* lse, const T* delta,
                  T* grad_key, T* grad_values, T* grad_edge, int threads) {
  for_each_source<heads>(
      by_source, grad_edge, threads,
      [=](int64_t v) {
        std::fill(grad_values + v * stride, grad_values + v * stride + width, T(0));
        std::fill(grad_key + v * stride, grad_key + v * stride + width, T(0));
      },
      [=](int64_t v, Batch<T>& batch) {
        for (int i = 0; i < batch.count; ++i) {
          const int64_t u = batch.target[i];
          if (i + 2 < batch.count) {
            prefetch(query + batch.target[i + 2] * stride, width * sizeof(T));
            prefetch(grad + batch.target[i + 2] * width, width * sizeof(T));
          }
          T* score = batch.score + i * heads;
          dots<heads>(query + u * stride, key + v * stride, width, score);
          dots<heads>(grad + u * width, values + v * stride, width,
                      batch.product + i * heads);
          for (int64_t h = 0; h < heads; ++h)
            score[h] = scale * score[h] - lse[u * heads + h];
        }
        exponentials(batch.score, batch.count * heads);
        for (int i = 0; i < batch.count; ++i) {
          const int64_t u = batch.target[i];
          const T* alpha = batch.score + i * heads;
          T weight[kLanes];
          spread<heads>(alpha, weight);
          add_scaled(grad_values + v * stride, weight, grad + u * width, width);
          for (int64_t h = 0; h < heads; ++h)
            batch.grad[i][h] =
                scale * alpha[h] * (batch.product[i * heads + h] - delta[u * heads + h]);
          spread<heads>(batch.grad[i], weight);
          add_scaled(grad_key + v * stride, weight, query + u * stride, width);
        }
      });
}

// out[u] = sum_e weight[e] (per head) * x[other(e)]
template <int heads, class T>
void weighted_sum(const Pattern& graph, int64_t width, int64_t stride, const T* weight, const T* x,
                  T* out, int threads) {
#pragma omp parallel for schedule(dynamic, kRowsAtATime) num_threads(threads)
  for (int64_t u = 0; u < graph.num_nodes; ++u) {
    T* row = out + u * stride;
    std::fill(row, row + width, T(0));
    const int64_t end = graph.offsets[u + 1];
    for (int64_t e = graph.offsets[u]; e < end; ++e) {
      if (graph.dropped(e)) continue;
      if (e + 2 < end) prefetch(x + graph.other[e + 2] * stride, width * sizeof(T));
      T lanes[kLanes];
      spread<heads>(weight + graph.position(e) * heads, lanes);
      add_scaled(row, lanes, x + graph.other[e] * stride, width);
    }
  }
}

// total[u, h] = sum over the row's edges of edge_value[e, h]
template <int heads, class T>
void sum_edges(const Pattern& graph, const T* edge_value, T* total, int threads) {
#pragma omp parallel for schedule(dynamic, kRowsAtATime) num_threads(threads)
  for (int64_t u = 0; u < graph.num_nodes; ++u) {
    T* row = total + u * heads;
    std::fill(row, row + heads, T(0));
    for (int64_t e = graph.offsets[u]; e < graph.offsets[u + 1]; ++e)
      for (int64_t h = 0; h < heads; ++h)
        row[h] += edge_value[graph.position(e) * heads + h];
  }
}

// out[e, h] = <a[target(e)], b[source(e)]> of head h, for all edges, dropped ones too
template <int heads, class T>
void edge_dots(const Pattern& graph, int64_t width, const T* a, const T* b, T* out,
               int threads) {
#pragma omp parallel for schedule(dynamic, kRowsAtATime) num_threads(threads)
  for (int64_t u = 0; u < graph.num_nodes; ++u) {
    const int64_t end = graph.offsets[u + 1];
    for (int64_t e = graph.offsets[u]; e < end; ++e) {
      if (e + 2 < end) prefetch(b + graph.other[e + 2] * width, width * sizeof(T));
      dots<heads>(a + u * width, b + graph.other[e] * width, width,
                  out + graph.position(e) * heads);
    }
  }
}

// Integer hash with low bias (multiply and xor-shift), on 32 bits to fill the lanes.
inline uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}

// out = x * scale where the hash of (seed, place) reaches the threshold, else 0: the
// mask depends on neither the threads nor on anything that must be kept.
template <class T>
void dropout(int64_t size, const T* x, T* out, const uint64_t* seed, uint32_t threshold,
             T scale, int threads) {
  const uint32_t low = *seed, high = *seed >> 32;
#pragma omp parallel for simd num_threads(threads)
  for (int64_t i = 0; i < size; ++i) {
    const uint32_t draw = mix(mix(static_cast<uint32_t>(i) + low) ^ high);
    out[i] = draw >= threshold ? x[i] * scale : T(0);
  }
}

// The address of a kernel, for which a number of heads is a constant: loops unroll.
template <class T, int heads>
void* find(const std::string& name) {
#define KERNEL(kernel) \
  if (name == #kernel) return reinterpret_cast<void*>(&kernel<heads, T>)
  KERNEL(additive_forward);
  KERNEL(additive_backward);
  KERNEL(dot_forward);
  KERNEL(dot_backward);
  KERNEL(row_dots);
  KERNEL(weighted_sum);
  KERNEL(edge_dots);
  KERNEL(sum_edges);
  if (name == "dropout") return reinterpret_cast<void*>(&dropout<T>);
  return nullptr;
}

template <class T>
void* find(const std::string& name, int heads) {
  switch (heads) {
    case 1: return find<T, 1>(name);
    case 2: return find<T, 2>(name);
    case 4: return find<T, 4>(name);
    case 8: return find<T, 8>(name);
    case 16: return find<T, 16>(name);
  }
  return nullptr;
}

}  // namespace

extern "C" void* ecg_kernel(const char* name, int heads, bool in_double) {
  return in_double ? find<double>(name, heads) : find<float>(name, heads);
}
