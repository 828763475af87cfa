import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { person } from '#domain/person.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { readCommand } from '#services/admin/usage.ts';
import { findPersonLink, takePersonLink } from '#services/auth/people/person-links.ts';
import { confirmSecondFactor, offerSecondFactor, resetPassword } from '#services/auth/people/security.ts';
import { startSession } from '#services/auth/people/sessions.ts';
import { signInByPassword } from '#services/auth/people/sign-in.ts';
import { findTeamInvite, joinAsNew } from '#services/auth/people/team-invites.ts';
import { MemoryDataKeys } from '#test/support/domain.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { goodPassword, inviteToTeam, peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

/** The operator's commands about people, over a world with an api. */

type Row = Readonly<Record<string, string>>;

suite('operator and people', (t) => {
  let world: World;
  const keys = new MemoryDataKeys();
  const destroyed: string[] = [];
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world?.close());

  const admin = async (args: string): Promise<Row> => {
    const asked = readCommand(args.split(' '));
    const command = asked?.command;
    if (asked === null || command === undefined || !('run' in command)) throw new Error('it needs no database');
    const dataKeys = Object.assign(keys, {
      destroy: async (subject: string) => void destroyed.push(subject),
      adopt: async () => undefined,
      uses: async () => new Map<string, number>(),
    });
    const answer = await command.run(
      {
        ...{ operator: world.operator, store: world.store, pool: world.pool, eventStore: world.eventStore },
        ...{ eraser: { erase: async () => undefined, forget: async () => undefined, stays: null } },
        ...{ log: world.log, codec: world.codec, secrets: world.secrets, dataKeys, logger: world.logger },
        credentials: { destroyOfClient: async () => undefined },
        attempts: { destroyOfClient: async () => undefined },
        ...{ consoleUrl: 'https://console.test', mediaQuota: 0, analytics: null, note: () => undefined },
        ...{ adapterOf: () => null, sandboxCall: () => null, confirm: null, blobs: world.deps.blobs },
        publishing: new PublishingHold(world.pool, 'on'),
        ...{ signal: new AbortController().signal, line: async () => undefined },
        sandbox: new SandboxNetwork({ database: { pool: world.pool } }),
      },
      asked.given,
    );
    return answer as Row;
  };
  const failure = async (args: string): Promise<Error> =>
    admin(args).then(
      () => assert.fail(`${args} succeeded`),
      (error: Error) => error,
    );
  const tokenOf = ({ secret = '' }: Row): string => secret.split('/').at(-1) ?? '';
  const signsIn = async (email: string, password: string): Promise<boolean> => {
    const ask = { email, password, address: '192.0.2.1', knownDevice: null };
    return (await signInByPassword(peopleDepsOf(world), ask)).outcome === 'signed_in';
  };

  t('session end: tokens that were made before have no power at the next call, later ones have', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'viewer');
    await world.settled();
    const by = async (more = '') => world.callerWith((await admin(`session ${memberId}${more}`)).secret ?? '');
    const [live, sandbox] = [await by(), await by(' --mode test')];
    for (const one of [live, sandbox]) assert.equal((await one.get('/agency')).status, 200);
    world.clock.shiftMs += 1_000;
    assert.equal((await admin(`session end ${memberId}`)).memberId, memberId);
    for (const one of [live, sandbox]) assert.equal((await one.get('/agency')).body.code, 'token_revoked');
    world.clock.shiftMs += 1_000;
    assert.equal((await (await by()).get('/agency')).status, 200);
    assert.equal((await live.get('/agency')).body.code, 'token_revoked');
    world.clock.shiftMs -= 2_000;
  });

  t('an invitation by an operator makes a member with a role', async () => {
    const made = await admin(`member invite --role manager --email op@example.com --workspace ${world.workspaceId}`);
    assert.match(made.secret ?? '', /^https:\/\/console\.test\/join\/[\w-]+$/);
    const link = await findTeamInvite(peopleDepsOf(world), tokenOf(made));
    assert.ok(link !== null);
    await joinAsNew(peopleDepsOf(world), link, { email: 'op@example.com', name: 'Op', password: goodPassword });
    await world.settled();
    const member = (await admin(`member list --workspace ${world.workspaceId}`)) as unknown as readonly Row[];
    assert.ok(member.some(({ memberId, role }) => memberId === made.memberId && role === 'manager'));
    assert.ok((await failure('member invite --role king')) instanceof UsageError);
  });

  t('a member that was made for keys alone gets a person, and keeps its keys', async () => {
    const { workspaceId, memberId, liveKey } = await world.agency('Linked');
    const made = await admin(`member link ${memberId}`);
    const link = await findTeamInvite(peopleDepsOf(world), tokenOf(made));
    assert.ok(link !== null);
    await joinAsNew(peopleDepsOf(world), link, { email: 'olga@example.com', name: 'Olga', password: goodPassword });
    await world.settled();
    const [only, second] = (await admin(`member list --workspace ${workspaceId}`)) as unknown as readonly Row[];
    assert.deepEqual([only?.memberId, only?.role, second], [memberId, 'owner', undefined]);
    assert.equal((await liveKey.caller.get('/agency')).status, 200);
  });

  t('a link for a person sets a new password, or signs in, once', async () => {
    const { email, personId } = await personOf(world);
    const reset = await admin(`person link ${email}`);
    assert.match(reset.secret ?? '', /^https:\/\/console\.test\/reset-password\//);
    assert.equal(await resetPassword(peopleDepsOf(world), tokenOf(reset), 'a brand new password'), personId);
    assert.ok(await signsIn(email, 'a brand new password'));
    const enter = await admin(`person link ${email} --for sign_in`);
    assert.match(enter.secret ?? '', /^https:\/\/console\.test\/enter\//);
    assert.equal(await takePersonLink(peopleDepsOf(world), tokenOf(enter), 'sign_in'), personId);
    assert.equal(await findPersonLink(peopleDepsOf(world), tokenOf(enter), 'sign_in'), null);
    assert.match((await failure('person link nobody@example.com')).message, /no person/);
    assert.ok((await failure(`person link ${email} --for fun`)) instanceof UsageError);
  });

  t('the word of an operator proves an address, and turns the second factor off', async () => {
    const { token } = await inviteToTeam(world);
    const people = peopleDepsOf(world);
    const link = await findTeamInvite(people, token);
    assert.ok(link !== null);
    const email = 'anybody@example.com';
    const personId = await joinAsNew(people, link, { email, name: 'Any Body', password: goodPassword });
    const known = async () => {
      const { state } = await world.store.load(person, personId);
      assert.ok(state.status === 'registered');
      return state;
    };
    assert.equal((await known()).emailProvenAt, null, 'a link for any address proves none');
    const { emailProvenAt = null } = await admin(`person prove ${email}`);
    assert.ok(emailProvenAt !== null && (await known()).emailProvenAt === emailProvenAt);
    world.clock.shiftMs += 1_000;
    assert.equal((await admin(`person prove ${email}`)).emailProvenAt, emailProvenAt);
    world.clock.shiftMs -= 1_000;
    const { text } = await offerSecondFactor(people, personId, goodPassword);
    await confirmSecondFactor(people, personId, new TOTP({ secret: Secret.fromBase32(text) }).generate());
    assert.equal(await signsIn(email, goodPassword), false);
    await admin(`person factor-off ${email}`);
    assert.ok(await signsIn(email, goodPassword));
    assert.equal((await known()).secondFactor, false);
  });

  t('a person is erased who is a member no more, and the address is free again', async () => {
    const { email, personId, memberId } = await personOf(world, { email: 'leaving@example.com' });
    await startSession(peopleDepsOf(world), { personId, by: 'password', device: 'x', address: 'y' });
    assert.match((await failure(`person erase ${email}`)).message, /Remove the person from/);
    await admin(`member remove ${memberId}`);
    await world.settled();
    await admin(`person erase ${personId}`);
    assert.ok(destroyed.includes(personId));
    assert.equal((await world.store.load(person, personId)).state.status, 'erased');
    const { rows } = await world.pool.query(
      `select (select count(*) from auth.people where person_id = $1)
            + (select count(*) from auth.sessions where person_id = $1 and ended_at is null) as n`,
      [personId],
    );
    assert.equal(Number(rows[0].n), 0);
    assert.equal(await signsIn(email, goodPassword), false);
    await admin(`person erase ${personId}`);
    const again = await personOf(world, { email });
    assert.notEqual(again.personId, personId);
    assert.match((await failure(`person erase ${randomUUID()}`)).message, /no such person/);
  });

  t('a new signing key waits until every process has seen it', async () => {
    const made = await admin('oauth rotate');
    assert.ok(Date.parse(made.signsFrom ?? '') > Date.now() + 60_000);
    assert.equal((await admin('oauth rotate')).key, made.key);
  });
});
