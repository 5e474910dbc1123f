/** What it costs to be rid of a day's claims: a partition that is dropped, beside batches that are deleted. */
@NullMarked
package io.onceflux.benchmarks.partitions;

import org.jspecify.annotations.NullMarked;
