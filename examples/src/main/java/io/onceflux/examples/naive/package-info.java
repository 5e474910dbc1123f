/** The consumer that most services have, to compare with. Not to be copied. */
@NullMarked
package io.onceflux.examples.naive;

import org.jspecify.annotations.NullMarked;
