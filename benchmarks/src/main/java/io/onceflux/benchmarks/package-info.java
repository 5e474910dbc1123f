/** What once costs, measured: the command, and what it measures. */
@NullMarked
package io.onceflux.benchmarks;

import org.jspecify.annotations.NullMarked;
