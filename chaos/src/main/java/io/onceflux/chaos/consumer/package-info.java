/** The process that is tested, and three that are broken on purpose, to see that the checker finds it. */
@NullMarked
package io.onceflux.chaos.consumer;

import org.jspecify.annotations.NullMarked;
