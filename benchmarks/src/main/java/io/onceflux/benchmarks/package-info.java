/** What the claim costs, measured. */
@NullMarked
package io.onceflux.benchmarks;

import org.jspecify.annotations.NullMarked;
