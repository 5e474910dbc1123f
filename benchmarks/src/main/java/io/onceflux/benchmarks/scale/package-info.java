/** Several processes on one topic: what more of them give, and what joining and leaving costs. */
@NullMarked
package io.onceflux.benchmarks.scale;

import org.jspecify.annotations.NullMarked;
