import { eventStoreSuite } from '#contracts/ports/event-store.suite.ts';
import { postgresHarness, postgresOffers } from '#test/support/event-store/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('postgres event store', (t) => {
  eventStoreSuite(t, postgresHarness, postgresOffers);
});
