package io.onceflux.services;

import java.io.PrintStream;

/**
 * What runs in the broker's own JVM: formats the folder if that is still to be done, then starts Kafka. By reflection, because
 * the broker's classes are on that JVM's class path only. Arguments: the file of the server's properties, the cluster id.
 */
final class KafkaBrokerMain {

    private KafkaBrokerMain() {}

    public static void main(String[] args) throws ReflectiveOperationException {
        String[] format = {"format", "--cluster-id", args[1], "--config", args[0], "--ignore-formatted"};
        Object code = Class.forName("kafka.tools.StorageTool")
                .getMethod("execute", String[].class, PrintStream.class)
                .invoke(null, format, System.out);
        if (!Integer.valueOf(0).equals(code)) {
            throw new IllegalStateException("formatting the folder ended with " + code);
        }
        Class.forName("kafka.Kafka").getMethod("main", String[].class).invoke(null, (Object) new String[] {args[0]});
    }
}
