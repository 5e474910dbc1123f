package io.onceflux.benchmarks.variant;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.scenario.Statements;
import java.io.IOException;
import javax.sql.DataSource;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.annotation.EnableRabbit;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.config.SimpleRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.listener.RabbitListenerEndpointRegistry;
import org.springframework.context.Lifecycle;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;

/**
 * What most services have today, done right: a {@code @RabbitListener} with 8 threads, a pool of 8 connections, and claim and
 * effect through {@link JdbcTemplate} in one {@code @Transactional} method. The container acknowledges when the listener returns.
 */
final class SpringAmqp extends FromBroker {

    private final AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
    private final RabbitListenerEndpointRegistry listeners;

    SpringAmqp(Case what, Site site) {
        super(new BrokerQueue(site, new Orders(what.duplicates())), site, true);
        context.registerBean(Case.class, () -> what);
        context.registerBean(Site.class, () -> site);
        context.registerBean(Runnable.class, () -> this::oneDone);
        context.register(Setup.class);
        context.refresh();
        listeners = context.getBean(RabbitListenerEndpointRegistry.class);
    }

    @Override
    void connect() {
        // One by one: after a stop, the registry starts none that does not start by itself.
        listeners.getListenerContainers().forEach(Lifecycle::start);
    }

    @Override
    void disconnect() {
        listeners.stop();
    }

    @Override
    public void close() {
        context.close();
        super.close();
    }

    @Configuration
    @EnableRabbit
    @EnableTransactionManagement
    static class Setup {

        @Bean
        DataSource dataSource(Site site, Case what) {
            HikariConfig pool = new HikariConfig();
            pool.setJdbcUrl(site.jdbcUrl());
            pool.setUsername(site.user());
            pool.setPassword(site.password());
            pool.setMaximumPoolSize(what.lanes());
            pool.setAutoCommit(false);
            return new HikariDataSource(pool);
        }

        @Bean
        JdbcTemplate jdbc(DataSource dataSource) {
            return new JdbcTemplate(dataSource);
        }

        @Bean
        PlatformTransactionManager transactions(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }

        @Bean
        ConnectionFactory broker(Site site) {
            return new CachingConnectionFactory(BrokerQueue.factory(site));
        }

        @Bean
        SimpleRabbitListenerContainerFactory rabbitListenerContainerFactory(ConnectionFactory broker, Case what) {
            SimpleRabbitListenerContainerFactory factory = new SimpleRabbitListenerContainerFactory();
            factory.setConnectionFactory(broker);
            factory.setConcurrentConsumers(what.lanes());
            factory.setAutoStartup(false);
            return factory;
        }

        @Bean
        Credits credits(JdbcTemplate jdbc) {
            return new Credits(jdbc);
        }

        @Bean
        Listener listener(Credits credits, Runnable whenDone) {
            return new Listener(credits, whenDone);
        }
    }

    /** Receives. */
    static class Listener {

        private final Credits credits;
        private final Runnable whenDone;

        Listener(Credits credits, Runnable whenDone) {
            this.credits = credits;
            this.whenDone = whenDone;
        }

        @RabbitListener(queues = "#{site.queue()}")
        void onOrder(Message message) throws IOException {
            credits.credit(Order.fromJson(message.getBody()));
            whenDone.run();
        }
    }

    /** Claim and effect in one transaction. */
    static class Credits {

        private final JdbcTemplate jdbc;

        Credits(JdbcTemplate jdbc) {
            this.jdbc = jdbc;
        }

        @Transactional
        public void credit(Order order) {
            if (jdbc.update(Statements.CLAIM, "spring", order.key()) == 0) {
                return;
            }
            if (jdbc.update(Statements.ADD_TO_BALANCE, order.points(), order.customerId()) != 1) {
                throw new IllegalStateException("no customer " + order.customerId());
            }
            jdbc.update(Statements.ENTER_IN_LEDGER, order.orderId(), order.customerId(), order.points());
        }
    }
}
