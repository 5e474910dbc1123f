package io.onceflux;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.junit.ArchTests;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(packages = "io.onceflux", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {

    @ArchTest
    static final ArchTests HOUSE = ArchTests.in(HouseRules.class);

    @ArchTest
    static final ArchRule SQL_KNOWS_NOTHING_OF_THE_PIPELINE = noClasses()
            .that()
            .resideInAPackage("io.onceflux.postgres..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.onceflux");

    @ArchTest
    static final ArchRule CORE_KNOWS_NO_BROKER = noClasses()
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("com.rabbitmq..", "reactor.rabbitmq..", "reactor.kafka..", "org.apache.kafka..");
}
