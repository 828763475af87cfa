/** One step of a person over the database of a test, until it dies: `<database> <SECRET_KEY> <step> <arguments as JSON>`. */
import { Secret, TOTP } from 'otpauth';
import { pino } from 'pino';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import type { PeopleDeps } from '#services/auth/people/deps.ts';
import { changePassword, confirmSecondFactor, setPasswordByLink } from '#services/auth/people/security.ts';
import { endSessions, startSession } from '#services/auth/people/sessions.ts';
import { findTeamInvite, joinAsNew } from '#services/auth/people/team-invites.ts';

type Arguments = Readonly<Record<string, string>>;

const steps: Readonly<Record<string, (people: PeopleDeps, given: Arguments) => Promise<unknown>>> = {
  join: async (people, { token = '', email = '', password = '' }) => {
    const link = await findTeamInvite(people, token);
    if (link === null) throw new Error('the invitation does not work');
    return joinAsNew(people, link, { email, name: 'Mortal', password });
  },
  start: (people, { personId = '' }) => startSession(people, { personId, by: 'password', device: 'd', address: 'a' }),
  end: (people, { personId = '' }) => endSessions(people, personId, { allBut: null }, 'revoked'),
  password: (people, { personId = '', password = '', next = '' }) =>
    changePassword(people, personId, { current: password, next, keep: personId }),
  prove: (people, { token = '', next = '' }) =>
    setPasswordByLink(people, { purpose: 'confirm', token, removes: true }, next),
  confirm: (people, { personId = '', text = '' }) =>
    confirmSecondFactor(people, personId, new TOTP({ secret: Secret.fromBase32(text) }).generate()),
};

const [url = '', key = '', step = '', given = '{}'] = process.argv.slice(2);
const eventStore = await PostgresEventStore.open({ url, pollMs: 200 });
const pool = openPool({ url, max: 4, name: 'mortal' });
const secrets = new Secrets(key);
const people: PeopleDeps = {
  store: new DomainStore(eventStore, new EventCodec(new PostgresDataKeys({ pool, secrets })), defaultPartitions),
  pool,
  secrets,
  clock: Date.now,
  logger: pino({ level: 'silent' }),
};
await steps[step]?.(people, JSON.parse(given));
await pool.end();
await eventStore.close();
