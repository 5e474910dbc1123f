/** From what was measured to the report: figures, ratios, tables and charts. Knows nothing of how it was measured. */
@NullMarked
package io.onceflux.benchmarks.report;

import org.jspecify.annotations.NullMarked;
