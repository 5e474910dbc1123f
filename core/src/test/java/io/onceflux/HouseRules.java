package io.onceflux;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.fields;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxOperator;
import reactor.core.publisher.MonoOperator;

/**
 * The rules that hold in every module. A module's test names its packages and takes these in:
 *
 * <pre>{@code
 * @AnalyzeClasses(packages = "io.onceflux.rabbit", importOptions = ImportOption.DoNotIncludeTests.class)
 * class ArchitectureTest {
 *     @ArchTest
 *     static final ArchTests house = ArchTests.in(HouseRules.class);
 * }
 * }</pre>
 */
public final class HouseRules {

    private HouseRules() {}

    @ArchTest
    public static final ArchRule NOTHING_BLOCKS_OR_SUBSCRIBES = noClasses()
            .should()
            .callMethodWhere(call(
                            "(reactor\\.core\\.publisher\\.|org\\.reactivestreams\\.).*",
                            "block|blockFirst|blockLast|blockOptional|subscribe|subscribeWith|toFuture|toIterable|toStream")
                    .and(not(handingItsSubscriberOn())))
            .because(
                    "the user subscribes; a library that does so hides errors, and one that blocks stalls an event loop");

    /** What an operator does when it is subscribed. */
    private static DescribedPredicate<JavaMethodCall> handingItsSubscriberOn() {
        return describe(
                "from an operator's own subscribe",
                call -> call.getOrigin().getName().equals("subscribe")
                        && (call.getOrigin().getOwner().isAssignableTo(Flux.class)
                                || call.getOrigin().getOwner().isAssignableTo(FluxOperator.class)
                                || call.getOrigin().getOwner().isAssignableTo(MonoOperator.class))
                        && call.getTarget().getRawParameterTypes().stream()
                                .allMatch(type -> type.isEquivalentTo(CoreSubscriber.class)));
    }

    @ArchTest
    public static final ArchRule NOTHING_SLEEPS = noClasses()
            .should()
            .callMethodWhere(call("java\\.lang\\.Thread", "sleep|join"))
            .because("every thread may be an event loop");

    @ArchTest
    public static final ArchRule SQL_LIVES_IN_ITS_PACKAGES = noClasses()
            .that()
            .resideOutsideOfPackages("io.onceflux.postgres..", "io.onceflux.outbox..")
            .and()
            .areNotAssignableTo(Connection.class)
            .should()
            .callMethodWhere(call(".*Connection", "createStatement|createBatch"))
            .orShould()
            .callMethodWhere(call(".*\\.Batch", "add").and(outsideOf(Batch.class)))
            .because(
                    "a statement is found where its table is; connections that hand on to others write none of their own");

    @ArchTest
    public static final ArchRule NOTHING_IS_DESERIALIZED = noClasses()
            .should()
            .dependOnClassesThat()
            .haveFullyQualifiedName("java.io.ObjectInputStream")
            .because("bytes that come from a broker must not choose which classes are loaded");

    @ArchTest
    public static final ArchRule PACKAGES_ARE_FREE_OF_CYCLES =
            slices().matching("io.onceflux.(**)").should().beFreeOfCycles().allowEmptyShould(true);

    @ArchTest
    public static final ArchRule NO_STATE_IS_PUBLIC = fields().that()
            .arePublic()
            .and(describe(
                    "are not constants",
                    field -> !(field.getModifiers().contains(JavaModifier.STATIC)
                            && field.getModifiers().contains(JavaModifier.FINAL))))
            .should()
            .notBePublic()
            .allowEmptyShould(true);

    @ArchTest
    public static final ArchRule ONLY_THE_METERS_KNOW_MICROMETER = noClasses()
            .that()
            .resideOutsideOfPackage("io.onceflux.micrometer..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.micrometer..")
            .because("it is an optional dependency");

    /** By name, not by type: of a class that was not imported, its supertypes are not known. */
    private static DescribedPredicate<JavaMethodCall> call(String owners, String methods) {
        return describe(
                "is " + methods + " of " + owners,
                call -> call.getTargetOwner().getName().matches(owners)
                        && call.getName().matches(methods));
    }

    private static DescribedPredicate<JavaMethodCall> outsideOf(Class<?> type) {
        DescribedPredicate<JavaClass> outside = DescribedPredicate.not(assignableTo(type));
        return describe("from outside of " + type.getSimpleName(), call -> outside.test(call.getOriginOwner()));
    }
}
