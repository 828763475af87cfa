import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Secret, TOTP } from 'otpauth';
import { person } from '#domain/person.ts';
import { workspace } from '#domain/workspace.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import type { PeopleDeps } from '#services/auth/people/deps.ts';
import { findPersonLink, mintPersonLink } from '#services/auth/people/person-links.ts';
import {
  confirmSecondFactor,
  offerSecondFactor,
  replaceRecoveryCodes,
  setPasswordByLink,
} from '#services/auth/people/security.ts';
import { listSessions, startSession } from '#services/auth/people/sessions.ts';
import { signInByPassword } from '#services/auth/people/sign-in.ts';
import { findTeamInvite, joinAs, joinAsNew } from '#services/auth/people/team-invites.ts';
import { expirePeopleRows } from '#services/auth/upkeep.ts';
import { built } from '#test/support/bundles.ts';
import { secretKey } from '#test/support/domain.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { goodPassword, inviteToTeam, peopleDepsOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

/** A process dies between two effects of a person; whoever repeats the step completes it. */

const script = fileURLToPath(new URL('./people-process.ts', import.meta.url));

suite('people: deaths', { drawn: true, costs: 5, timeoutMs: 180_000 }, (t) => {
  const key = secretKey();
  let world: World;
  let people: PeopleDeps;
  t.before(async () => {
    world = await startWorld();
    const secrets = new Secrets(key);
    // The data keys are shared with the processes that die.
    const keys = new PostgresDataKeys({ pool: world.pool, secrets });
    const store = new DomainStore(world.eventStore, new EventCodec(keys), defaultPartitions);
    people = { ...peopleDepsOf(world), store, secrets };
  });
  t.after(() => world?.close());

  /** @returns the signal by which the process ended */
  const dies = async (step: string, given: Readonly<Record<string, string>>, fault: string): Promise<unknown> => {
    const spawned = spawn(process.execPath, [built(script), world.db.url, key, step, JSON.stringify(given)], {
      env: { ...process.env, POSTLINE_FAULT: fault, POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return new Promise((resolve) => spawned.once('exit', (_code, signal) => resolve(signal)));
  };
  const child = dies;
  const signsIn = async (email: string, password: string): Promise<string> => {
    await world.pool.query('delete from auth.attempts');
    const ask = { email, password, address: '192.0.2.1', knownDevice: null };
    return (await signInByPassword(people, ask)).outcome;
  };
  /** For any address: the world's own keys cannot open one that is sealed here. */
  const invited = () => inviteToTeam({ ...world, store: people.store, secrets: people.secrets }, { role: 'creator' });
  const newPerson = async () => {
    const email = `${randomUUID()}@example.com`;
    const link = await findTeamInvite(people, (await invited()).token);
    assert.ok(link !== null);
    return { email, personId: await joinAsNew(people, link, { email, name: 'Ann', password: goodPassword }) };
  };

  for (const [fault, hasRowThen] of [
    ['person:after-claim', false],
    ['person:after-events', false],
    ['person:after-row', true],
    ['team-invite:after-accept', true],
    ['team-invite:after-join', true],
  ] as const) {
    t(`${fault}: the same invitation makes the member, once`, async () => {
      const email = `${fault.replace(':', '.')}@example.com`;
      const { token, memberId } = await invited();
      assert.equal(await dies('join', { token, email, password: goodPassword }, fault), 'SIGKILL');
      const before = await world.store.load(workspace, world.workspaceId);
      assert.ok(before.state.status === 'created');
      const isMember = before.state.members[memberId] !== undefined;
      assert.equal(await signsIn(email, goodPassword), hasRowThen ? 'signed_in' : 'wrong');
      assert.equal(isMember, fault === 'team-invite:after-join', 'credentials come before the membership');
      const link = await findTeamInvite(people, token);
      assert.ok(link !== null);
      const { rows } = await world.pool.query(
        'select person_id::text from auth.people order by created_at desc limit 1',
      );
      const personId = hasRowThen ? String(rows[0].person_id) : null;
      if (personId === null) await joinAsNew(people, link, { email, name: 'Mortal', password: goodPassword });
      else await joinAs(people, link, personId);
      assert.equal(await signsIn(email, goodPassword), 'signed_in');
      const { state, events } = await world.store.load(workspace, world.workspaceId);
      assert.ok(state.status === 'created' && state.members[memberId]?.role === 'creator');
      const added = events.filter(({ type, data }) => type === 'MemberAdded' && data.memberId === memberId);
      assert.equal(added.length, 1);
    });
  }

  t('person:after-events: nobody else completes the registration with a password of their own', async () => {
    const email = 'stolen@example.com';
    const { token } = await invited();
    assert.equal(await child('join', { token, email, password: goodPassword }, 'person:after-events'), 'SIGKILL');
    const other = await invited();
    const link = await findTeamInvite(people, other.token);
    assert.ok(link !== null);
    const steal = joinAsNew(people, link, { email, name: 'Thief', password: 'a password of a thief' });
    await assert.rejects(steal, /already/);
    assert.equal(await signsIn(email, 'a password of a thief'), 'wrong');
  });

  t('session:after-start: a session without a row signs nobody in', async () => {
    const { personId } = await newPerson();
    assert.equal(await child('start', { personId }, 'session:after-start'), 'SIGKILL');
    assert.deepEqual(await listSessions(people, personId), []);
  });

  t('session:after-end: the session has ended, and its event follows', async () => {
    const { personId } = await newPerson();
    const { id } = await startSession(people, { personId, by: 'password', device: 'd', address: 'a' });
    assert.equal(await child('end', { personId }, 'session:after-end'), 'SIGKILL');
    assert.deepEqual(await listSessions(people, personId), []);
    await world.pool.query(`update auth.sessions set ended_at = ended_at - interval '1 minute' where id = $1`, [id]);
    await expirePeopleRows(people);
    assert.equal((await world.store.readStream(`session-${id}`)).at(-1)?.type, 'SessionRevoked');
  });

  t('password:after-row: the new password holds, and nobody is in by the former one', async () => {
    const { personId, email } = await newPerson();
    const { id } = await startSession(people, { personId, by: 'password', device: 'd', address: 'a' });
    const link = await mintPersonLink(people, personId, 'reset');
    const next = 'the next good password';
    assert.equal(await child('password', { personId, password: goodPassword, next }, 'password:after-row'), 'SIGKILL');
    assert.deepEqual(await listSessions(people, personId), []);
    assert.equal(await findPersonLink(people, link.token, 'reset'), null);
    assert.equal(await signsIn(email, goodPassword), 'wrong');
    assert.equal(await signsIn(email, next), 'signed_in');
    await world.pool.query(`update auth.sessions set ended_at = ended_at - interval '1 minute' where id = $1`, [id]);
    await expirePeopleRows(people);
    assert.equal((await world.store.readStream(`session-${id}`)).at(-1)?.type, 'SessionRevoked');
  });

  t(
    'password:after-row: what a stranger made has ended, and another link tells that the address is proven',
    async () => {
      const { personId, email } = await newPerson();
      const { text } = await offerSecondFactor(people, personId, goodPassword);
      await confirmSecondFactor(people, personId, new TOTP({ secret: Secret.fromBase32(text) }).generate());
      const next = 'the word of the owner';
      const { token } = await mintPersonLink(people, personId, 'confirm');
      assert.equal(await child('prove', { token, next }, 'password:after-row'), 'SIGKILL');
      assert.equal(await signsIn(email, goodPassword), 'wrong');
      assert.equal(await signsIn(email, next), 'signed_in');
      const known = async () => {
        const { state } = await people.store.load(person, personId);
        assert.ok(state.status === 'registered');
        return state;
      };
      assert.deepEqual([(await known()).emailProvenAt, (await known()).secondFactor], [null, true]);
      const again = await mintPersonLink(people, personId, 'confirm');
      await setPasswordByLink(people, { purpose: 'confirm', token: again.token, removes: true }, next);
      assert.ok((await known()).emailProvenAt !== null && !(await known()).secondFactor);
    },
  );

  t('second-factor:after-row: the factor is asked for, and new recovery codes complete it', async () => {
    const { personId, email } = await newPerson();
    const { text } = await offerSecondFactor(people, personId, goodPassword);
    assert.equal(await child('confirm', { personId, text }, 'second-factor:after-row'), 'SIGKILL');
    assert.equal(await signsIn(email, goodPassword), 'second_factor');
    const again = new TOTP({ secret: Secret.fromBase32(text) }).generate();
    await assert.rejects(confirmSecondFactor(people, personId, again), /nothing to confirm/);
    assert.equal((await replaceRecoveryCodes(people, personId, goodPassword)).length, 10);
    const { state } = await people.store.load(person, personId);
    assert.ok(state.status === 'registered' && state.secondFactor, 'the event follows');
  });
});
