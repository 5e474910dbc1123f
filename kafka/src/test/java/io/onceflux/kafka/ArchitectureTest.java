package io.onceflux.kafka;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.junit.ArchTests;
import io.onceflux.HouseRules;

/** The house rules hold here too. */
@AnalyzeClasses(packages = "io.onceflux.kafka", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {

    @ArchTest
    static final ArchTests HOUSE = ArchTests.in(HouseRules.class);
}
