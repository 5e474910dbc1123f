/**
 * For users' own tests: is my effect once, and does it stay in its transaction? {@link io.onceflux.testkit.OnceFluxAssertions} is the place to
 * begin.
 */
@NullMarked
package io.onceflux.testkit;

import org.jspecify.annotations.NullMarked;
