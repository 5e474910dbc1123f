/** JMH forks that live side by side and take turns, so that what is compared runs within seconds of each other. */
@NullMarked
package io.onceflux.benchmarks.turns;

import org.jspecify.annotations.NullMarked;
