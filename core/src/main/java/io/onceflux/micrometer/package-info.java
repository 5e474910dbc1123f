/** Meters of consumers in Micrometer, which is an optional dependency: only this package needs it. */
@NullMarked
package io.onceflux.micrometer;

import org.jspecify.annotations.NullMarked;
