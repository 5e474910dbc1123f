/** Real servers, and JVMs that can be killed, for tests and for the demo: started on demand, gone with this JVM. */
@NullMarked
package io.onceflux.services;

import org.jspecify.annotations.NullMarked;
