/** A loyalty service: points for completed orders, credited once however often the message comes. Made to be copied. */
@NullMarked
package io.onceflux.examples.loyalty;

import org.jspecify.annotations.NullMarked;
