package io.onceflux.chaos;

import io.onceflux.chaos.proxy.TcpProxy;
import io.onceflux.chaos.proxy.Trap;
import io.onceflux.chaos.proxy.Trap.Action;

/** Does to the site what the schedule says, one fault after the other, and keeps count. */
final class Injector {

    private final Site site;
    private final Tally tally = new Tally();

    Injector(Site site) {
        this.site = site;
    }

    Tally tally() {
        return tally;
    }

    /** Returns when what was stopped is up again; traps spring some time later. */
    void strike(Fault fault) throws InterruptedException {
        Thread.sleep(fault.pause());
        TcpProxy commits = site.commits().get(fault.consumer() - 1);
        switch (fault.kind()) {
            case KILL_CONSUMER -> kill(fault);
            case TERMINATE_CONSUMER -> site.consumers().terminate(fault.consumer());
            case STALL_CONSUMER -> site.consumers().stall(fault.consumer(), fault.lasting());
            case KILL_POSTGRES -> away(fault, site.postgres()::kill, site.postgres()::restart);
            case RESTART_POSTGRES -> away(fault, site.postgres()::stop, site.postgres()::restart);
            case STALL_POSTGRES -> away(fault, site.postgres()::freeze, site.postgres()::thaw);
            case KILL_BROKER -> away(fault, site.broker()::kill, site.broker()::restart);
            case RESTART_BROKER -> away(fault, site.broker()::stop, site.broker()::restart);
            case STALL_BROKER -> away(fault, site.broker()::freeze, site.broker()::thaw);
            case KILL_AT_COMMIT -> arm(fault, commits, fault.trap(Action.CUT_BEFORE, () -> kill(fault)));
            case KILL_AFTER_COMMIT -> arm(fault, commits, fault.trap(Action.CUT_AFTER, () -> kill(fault)));
            case KILL_AT_ACK -> arm(fault, acks(fault), fault.trap(Action.CUT_BEFORE, () -> kill(fault)));
            case CUT_BEFORE_COMMIT -> arm(fault, commits, fault.trap(Action.CUT_BEFORE));
            case CUT_AFTER_COMMIT -> arm(fault, commits, fault.trap(Action.CUT_AFTER));
            case DELAY_COMMIT -> arm(fault, commits, fault.trap(Action.DELAY_BEFORE));
            case DELAY_COMMIT_ANSWER -> arm(fault, commits, fault.trap(Action.DELAY_AFTER));
            case CUT_BEFORE_ACK -> arm(fault, acks(fault), fault.trap(Action.CUT_BEFORE));
            case DELAY_ACK -> arm(fault, acks(fault), fault.trap(Action.DELAY_BEFORE));
        }
        tally.struck(fault.kind());
    }

    private TcpProxy acks(Fault fault) {
        return site.acks().get(fault.consumer() - 1);
    }

    /** Nothing goes wrong from now on. */
    void end() {
        site.commits().forEach(TcpProxy::disarm);
        site.acks().forEach(TcpProxy::disarm);
        site.consumers().mend();
    }

    private static void away(Fault fault, Runnable down, Runnable up) throws InterruptedException {
        down.run();
        try {
            Thread.sleep(fault.millis());
        } finally {
            up.run();
        }
    }

    private void kill(Fault fault) {
        site.consumers().kill(fault.consumer());
    }

    private void arm(Fault fault, TcpProxy proxy, Trap trap) {
        tally.armed(fault.kind(), trap);
        proxy.arm(trap);
    }
}
