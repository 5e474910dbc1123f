/** Every SQL statement of claims, and the tables that they need. */
@NullMarked
package io.onceflux.postgres;

import org.jspecify.annotations.NullMarked;
