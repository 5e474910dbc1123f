/** The ways to run the scenario that are compared. */
@NullMarked
package io.onceflux.benchmarks.variant;

import org.jspecify.annotations.NullMarked;
