/** The one scenario that every variant runs: the same orders, statements, tables and books. */
@NullMarked
package io.onceflux.benchmarks.scenario;

import org.jspecify.annotations.NullMarked;
