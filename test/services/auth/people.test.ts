import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { Rejection } from '#domain/decider.ts';
import { person } from '#domain/person.ts';
import { workspace } from '#domain/workspace.ts';
import { Unavailable, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { beginAttempt, ofAccount, TooManyAttempts } from '#services/auth/people/attempts.ts';
import { People } from '#services/auth/people/credentials.ts';
import { emailMac } from '#services/auth/people/emails.ts';
import { type HashFor, isPassword } from '#services/auth/people/passwords.ts';
import { findPersonLink, mintAskedLink, mintPersonLink } from '#services/auth/people/person-links.ts';
import { loadPerson } from '#services/auth/people/register.ts';
import {
  changePassword,
  confirmSecondFactor,
  offerSecondFactor,
  removeSecondFactor,
  replaceRecoveryCodes,
  resetPassword,
} from '#services/auth/people/security.ts';
import { endSessions, findSession, listSessions, startSession } from '#services/auth/people/sessions.ts';
import { deviceToken, signInByCode, signInByPassword } from '#services/auth/people/sign-in.ts';
import { findTeamInvite, joinAs, joinAsNew } from '#services/auth/people/team-invites.ts';
import { expirePeopleRows } from '#services/auth/upkeep.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { startWorld } from '#test/support/http.ts';
import { goodPassword, inviteToTeam, peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

const world = await startWorld();
const people = peopleDepsOf(world);

const refusal = async (work: Promise<unknown>): Promise<Rejection> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof Rejection) return error;
    throw error;
  }
  throw new Error('nothing was refused');
};

let addresses = 0;
/** Attempts of one test do not count against another. */
const anAddress = (): string => {
  addresses += 1;
  return `192.0.2.${addresses}`;
};

const signIn = (email: string, password: string, address = anAddress(), knownDevice: string | null = null) =>
  signInByPassword(people, { email, password, address, knownDevice });

/** Any wait is over. */
const letTimePass = () => world.pool.query(`update auth.attempts set last_at = last_at - interval '1 hour'`);

/** None of a wait is over, however long the hashes before took. */
const noTimePassed = () => world.pool.query('update auth.attempts set last_at = now()');

/** Attempts that count against the account from that browser. */
const failuresOf = async (email: string, device: string): Promise<number> => {
  const { what } = ofAccount(emailMac(people.secrets, email), hash('sha256', device, 'hex'));
  const key = hash('sha256', what, 'buffer');
  const { rows } = await world.pool.query('select failures from auth.attempts where key = $1', [key]);
  return rows[0]?.failures ?? 0;
};

/** The links of the person were made more than an hour ago. */
const makeOlder = (personId: string) =>
  world.pool.query(
    `update auth.person_links set created_at = created_at - interval '61 minutes' where person_id = $1`,
    [personId],
  );

/** So many hashes at once; resolves to how many were refused. */
const floodOf = async (hashes: number, caller: HashFor): Promise<number> => {
  const ends = await Promise.allSettled(Array.from({ length: hashes }, () => isPassword('a guess', null, caller)));
  return ends.filter(({ status }) => status === 'rejected').length;
};

suite('joining a team', (t) => {
  t('registers the person, whose credentials are there before the membership', async () => {
    const { personId, memberId, email } = await personOf(world, { role: 'creator', email: 'New@Example.com' });
    const known = await loadPerson(people, personId);
    assert.deepEqual([known?.email, known?.name], ['new@example.com', 'Ann Example']);
    const { state } = await world.store.load(workspace, world.workspaceId);
    assert.ok(state.status === 'created');
    assert.deepEqual(state.members[memberId], { name: 'Member', role: 'creator', personId });
    assert.equal((await signIn(email, goodPassword)).outcome, 'signed_in');
  });

  t('works once, and not for another address', async () => {
    const { token } = await inviteToTeam(world, { email: 'one@example.com' });
    const link = await findTeamInvite(people, token);
    assert.ok(link !== null);
    const wanted = { name: 'One', password: goodPassword };
    assert.equal(
      (await refusal(joinAsNew(people, link, { ...wanted, email: 'two@example.com' }))).code,
      'validation_failed',
    );
    const personId = await joinAsNew(people, link, { ...wanted, email: ' One@example.com' });
    const again = await findTeamInvite(people, token);
    assert.ok(again !== null);
    await joinAs(people, again, personId);
    const other = await personOf(world);
    assert.equal((await refusal(joinAs(people, again, other.personId))).code, 'already_exists');
    assert.equal((await refusal(joinAsNew(people, again, { ...wanted, email: 'x@example.com' }))).code, 'not_found');
  });

  t('is not offered by a link that is unknown, forged, expired, or of another kind', async () => {
    const { token, inviteId } = await inviteToTeam(world, { lifeMs: 1_000 });
    assert.ok((await findTeamInvite(people, token)) !== null);
    const forged = `${token.slice(0, -6)}AAAAAA`;
    for (const strange of ['', 'x', forged, token.slice(1), `${token}A`, '../../etc/passwd', inviteId]) {
      assert.equal(await findTeamInvite(people, strange), null, strange);
    }
    world.clock.shiftMs += 2_000;
    assert.equal(await findTeamInvite(people, token), null);
    world.clock.shiftMs -= 2_000;
  });

  t('makes no member of whoever was removed and opens the old link again', async () => {
    const { token, memberId } = await inviteToTeam(world, { email: 'gone@example.com', role: 'manager' });
    const link = await findTeamInvite(people, token);
    assert.ok(link !== null);
    const personId = await joinAsNew(people, link, { email: 'gone@example.com', name: 'Gone', password: goodPassword });
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, workspace, world.workspaceId, { type: 'RemoveMember', memberId }, context);
    const again = await findTeamInvite(people, token);
    assert.ok(again !== null);
    assert.equal((await refusal(joinAs(people, again, personId))).code, 'not_found');
    const { state } = await world.store.load(workspace, world.workspaceId);
    assert.ok(state.status === 'created' && state.members[memberId] === undefined);
  });

  t('ends with the power of the member who made it', async () => {
    const memberId = await world.memberOf(world.workspaceId, 'owner');
    const asMember = { ...world, operator: { ...world.operator, actor: { type: 'member', id: memberId } as const } };
    const [high, low] = [
      await inviteToTeam(asMember, { role: 'owner' }),
      await inviteToTeam(asMember, { role: 'creator' }),
    ];
    const before = await findTeamInvite(people, high.token);
    assert.ok(before !== null);
    const change = (command: Parameters<typeof workspace.decide>[0]) =>
      execute(world.store, workspace, world.workspaceId, command, contextOf(world.operator, world.workspaceId));
    await change({ type: 'ChangeRole', memberId, role: 'manager' });
    assert.equal(await findTeamInvite(people, high.token), null, 'a Manager makes no Owner');
    assert.ok((await findTeamInvite(people, low.token)) !== null);
    const wanted = { email: `late.${uuidv7()}@example.com`, name: 'Late', password: goodPassword };
    assert.equal((await refusal(joinAsNew(people, before, wanted))).code, 'not_found', 'the page was open already');
    await change({ type: 'RemoveMember', memberId });
    assert.equal(await findTeamInvite(people, low.token), null);
  });

  t('for any address tells of few addresses whether they are taken, wherever it is asked from', async () => {
    const { token } = await inviteToTeam(world);
    const link = await findTeamInvite(people, token);
    assert.ok(link !== null);
    const { email } = await personOf(world);
    const codes: string[] = [];
    for (let at = 0; at < 7; at += 1) {
      codes.push((await refusal(joinAsNew(people, link, { email, name: 'Ann', password: goodPassword }))).code);
    }
    assert.deepEqual([codes[0], codes.at(-1)], ['already_exists', 'rate_limited']);
  });

  t('is refused to a second person with the same address, at once or later', async () => {
    const email = 'twice@example.com';
    const links = await Promise.all([1, 2, 3].map(() => inviteToTeam(world, { email })));
    const found = await Promise.all(links.map(({ token }) => findTeamInvite(people, token)));
    const ends = await Promise.allSettled(
      found.map((link, at) => {
        assert.ok(link !== null);
        return joinAsNew(people, link, { email, name: 'Twice', password: `${goodPassword} ${at}` });
      }),
    );
    const joined = ends.flatMap((end, at) => (end.status === 'fulfilled' ? [at] : []));
    assert.equal(joined.length, 1, JSON.stringify(ends));
    for (const at of [0, 1, 2]) {
      const { outcome } = await signIn(email, `${goodPassword} ${at}`);
      assert.equal(outcome, at === joined[0] ? 'signed_in' : 'wrong');
    }
  });

  t('leaves a link as it is where the person is a member already', async () => {
    const { personId } = await personOf(world);
    const { token } = await inviteToTeam(world);
    const link = await findTeamInvite(people, token);
    assert.ok(link !== null);
    assert.equal((await refusal(joinAs(people, link, personId))).code, 'already_exists');
    assert.equal((await findTeamInvite(people, token))?.state.status, 'open');
  });

  t('refuses weak passwords, and names and addresses that are none', async () => {
    const { token } = await inviteToTeam(world);
    const link = await findTeamInvite(people, token);
    assert.ok(link !== null);
    const good = { email: 'weak@example.com', name: 'Walter Weak', password: goodPassword };
    for (const wrong of [
      { password: 'short' },
      { password: 'x'.repeat(257) },
      { password: 'aaaaaaaaaaaaaaaa' },
      { password: 'walterweakweak' },
      { password: 'password12345' },
      { email: 'no address' },
      { email: 'a@b@example.com' },
      { email: '@example.com' },
      { email: 'a@localhost' },
      { email: `a@${'b'.repeat(300)}.com` },
      { email: 'a\u0000b@example.com' },
      { name: ' ' },
      { name: 'a\nb' },
      { name: 'x'.repeat(201) },
    ]) {
      const { code } = await refusal(joinAsNew(people, link, { ...good, ...wrong }));
      assert.equal(code, 'validation_failed', JSON.stringify(wrong));
    }
    assert.equal((await findTeamInvite(people, token))?.state.status, 'open');
    assert.ok(await joinAsNew(people, link, good));
  });
});

suite('sign-in', (t) => {
  t('tells nothing of which accounts exist', async () => {
    const { email } = await personOf(world);
    assert.deepEqual(await signIn(email, 'a wrong password'), await signIn('nobody@example.com', 'a wrong password'));
    assert.equal((await signIn(email.toUpperCase(), goodPassword)).outcome, 'signed_in');
    assert.equal((await signIn(email, '')).outcome, 'wrong');
    assert.equal((await signIn(email, goodPassword.repeat(1_000))).outcome, 'wrong');
    assert.equal((await signIn('x'.repeat(100_000), 'y')).outcome, 'wrong');
  });

  t('makes wait for an account, the same for one that does not exist, and not its own browser', async () => {
    const { email, personId } = await personOf(world);
    for (const account of [email, 'ghost@example.com']) {
      for (let at = 0; at < 5; at += 1) assert.equal((await signIn(account, 'wrong')).outcome, 'wrong');
      await noTimePassed();
      const refused = await refusal(signIn(account, goodPassword));
      assert.ok(refused instanceof TooManyAttempts && refused.seconds <= 1, refused.message);
    }
    const own = deviceToken(people, personId);
    assert.equal((await signIn(email, goodPassword, anAddress(), own)).outcome, 'signed_in');
    const stranger = deviceToken(people, uuidv7());
    await noTimePassed();
    assert.ok((await refusal(signIn(email, goodPassword, anAddress(), stranger))) instanceof TooManyAttempts);
    await letTimePass();
    assert.equal((await signIn(email, goodPassword)).outcome, 'signed_in');
  });

  t('makes no browser wait for its address in which the person has signed in', async () => {
    const { email, personId } = await personOf(world);
    const address = anAddress();
    for (let at = 0; at < 20; at += 1) await signIn(`stranger${at}@example.com`, 'wrong', address);
    await noTimePassed();
    assert.ok((await refusal(signIn(email, goodPassword, address))) instanceof TooManyAttempts);
    const own = deviceToken(people, personId);
    assert.equal((await signIn(email, goodPassword, address, own)).outcome, 'signed_in');
    // It guesses at its own person alone, and not more often.
    const other = await personOf(world);
    assert.ok((await refusal(signIn(other.email, goodPassword, address, own))) instanceof TooManyAttempts);
    for (let at = 0; at < 5; at += 1) assert.equal((await signIn(email, 'wrong', address, own)).outcome, 'wrong');
    await noTimePassed();
    assert.ok((await refusal(signIn(email, goodPassword, address, own))) instanceof TooManyAttempts);
    await letTimePass();
  });

  t('counts attempts at once: as many as are free, and not one more', async () => {
    for (const attempts of [5, 40]) {
      const attempted = { what: `at once ${attempts}`, free: 5 };
      const ends = await Promise.allSettled(
        Array.from({ length: attempts }, () => beginAttempt(world.pool, attempted)),
      );
      assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 5, `${attempts} at once`);
    }
    const { email } = await personOf(world);
    const ends = await Promise.allSettled(Array.from({ length: 40 }, () => signIn(email, 'wrong')));
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 5);
  });

  t('a flood of strangers holds up no browser that is known, and no stranger of another network', async () => {
    const { email, personId } = await personOf(world);
    await signIn(email, goodPassword);
    const flood = floodOf(100, { known: false, owner: '203.0' });
    const before = performance.now();
    const own = deviceToken(people, personId);
    assert.equal((await signIn(email, goodPassword, anAddress(), own)).outcome, 'signed_in');
    const ownMs = performance.now() - before;
    assert.equal((await signIn(email, goodPassword, anAddress())).outcome, 'signed_in');
    const bothMs = performance.now() - before;
    assert.ok((await flood) >= 30);
    const floodMs = performance.now() - before;
    assert.ok(ownMs < floodMs / 2 && bothMs < floodMs, `${ownMs} and ${bothMs} of ${floodMs} ms`);
  });

  t('forgets old attempts as fast as a flood makes them', async () => {
    await world.pool.query(
      `insert into auth.attempts (key, failures, last_at)
       select sha256(n::text::bytea), 1, now() - interval '2 days' from generate_series(1, 2500) n`,
    );
    await expirePeopleRows(people);
    const { rows } = await world.pool.query(
      `select count(*)::int as n from auth.attempts where last_at < now() - interval '1 day'`,
    );
    assert.equal(rows[0].n, 0);
  });

  t('makes an address wait that tries many accounts, twice as long each time', async () => {
    const address = anAddress();
    for (let at = 0; at < 20; at += 1) await signIn(`user${at}@example.com`, 'wrong', address);
    const seconds: number[] = [];
    for (let at = 0; at < 12; at += 1) {
      await noTimePassed();
      const refused = await refusal(signIn(`more${at}@example.com`, 'wrong', address));
      assert.ok(refused instanceof TooManyAttempts);
      seconds.push(refused.seconds);
      await world.pool.query(`update auth.attempts set last_at = last_at - interval '15 minutes'`);
      await signIn(`again${at}@example.com`, 'wrong', address);
    }
    assert.deepEqual(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  });
});

suite('sessions', (t) => {
  const start = (personId: string) =>
    startSession(people, { personId, by: 'password', device: 'Firefox on Linux', address: '192.0.2.1' });

  t('are found by their secret alone, listed, and end at once', async () => {
    const { personId } = await personOf(world);
    const [one, two] = [await start(personId), await start(personId)];
    assert.equal((await findSession(people, one.secret))?.id, one.id);
    assert.equal(await findSession(people, one.id), null);
    assert.equal((await listSessions(people, personId)).length, 2);
    const other = await personOf(world);
    assert.deepEqual(await endSessions(people, other.personId, { ids: [one.id] }, 'revoked'), []);
    assert.deepEqual(await endSessions(people, personId, { ids: [one.id] }, 'revoked'), [one.id]);
    assert.equal(await findSession(people, one.secret), null);
    assert.equal((await findSession(people, two.secret))?.id, two.id);
    const events = await world.store.readStream(`session-${one.id}`);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['SessionStarted', 'SessionRevoked'],
    );
  });

  t('end after a week without use, and after 30 days in any case', async () => {
    const { personId } = await personOf(world);
    const dayMs = 86_400_000;
    const { secret } = await start(personId);
    world.clock.shiftMs += 6 * dayMs;
    assert.ok((await findSession(people, secret)) !== null);
    world.clock.shiftMs += 6 * dayMs;
    assert.ok((await findSession(people, secret)) !== null);
    world.clock.shiftMs += 8 * dayMs;
    assert.equal(await findSession(people, secret), null);
    world.clock.shiftMs -= 20 * dayMs;
  });

  t('are bounded in number: the oldest ends', async () => {
    const { personId } = await personOf(world);
    const all = [];
    for (let at = 0; at < 52; at += 1) all.push(await start(personId));
    assert.equal((await listSessions(people, personId)).length, 50);
    assert.equal(await findSession(people, all[0]?.secret ?? ''), null);
    assert.ok((await findSession(people, all[51]?.secret ?? '')) !== null);
  });

  t('whose process died before it told of the end are told of later', async () => {
    const { personId } = await personOf(world);
    const { id } = await start(personId);
    await world.pool.query(
      `update auth.sessions set ended_at = now() - interval '1 minute', end_reason = 'revoked' where id = $1`,
      [id],
    );
    await expirePeopleRows(people);
    assert.equal((await world.store.readStream(`session-${id}`)).at(-1)?.type, 'SessionRevoked');
  });
});

suite('a new password', (t) => {
  t('needs the former one, and ends every other session', async () => {
    const { personId, email } = await personOf(world);
    const start = () => startSession(people, { personId, by: 'password', device: 'x', address: 'y' });
    const [kept, ended] = [await start(), await start()];
    const next = 'another good password';
    const change = (current: string) => changePassword(people, personId, { current, next, keep: kept.id });
    assert.equal((await refusal(change('wrong'))).code, 'validation_failed');
    await change(goodPassword);
    assert.ok((await findSession(people, kept.secret)) !== null);
    assert.equal(await findSession(people, ended.secret), null);
    assert.equal((await signIn(email, goodPassword)).outcome, 'wrong');
    assert.equal((await signIn(email, next)).outcome, 'signed_in');
  });

  t('is set through a link, once, and ends every session and every other link', async () => {
    const { personId, email } = await personOf(world);
    const { secret } = await startSession(people, { personId, by: 'password', device: 'x', address: 'y' });
    const [link, other] = [
      await mintPersonLink(people, personId, 'reset'),
      await mintPersonLink(people, personId, 'reset'),
    ];
    assert.equal(await findPersonLink(people, link.token, 'sign_in'), null);
    assert.equal((await refusal(resetPassword(people, link.token, 'short'))).code, 'validation_failed');
    assert.equal((await refusal(resetPassword(people, link.token, email.slice(0, 40)))).code, 'validation_failed');
    assert.equal(await resetPassword(people, link.token, 'a brand new password'), personId);
    assert.equal(await resetPassword(people, link.token, 'a brand new password'), null);
    assert.equal(await findPersonLink(people, other.token, 'reset'), null);
    assert.equal(await findSession(people, secret), null);
    assert.equal((await signIn(email, 'a brand new password')).outcome, 'signed_in');
  });

  t(
    'ends, of an account that nobody has proven, what a stranger made; the second factor of a proven one stays',
    async () => {
      const email = `vera.${uuidv7()}@example.com`;
      const link = await findTeamInvite(people, (await inviteToTeam(world)).token);
      assert.ok(link !== null);
      const personId = await joinAsNew(people, link, { email, name: 'Vera', password: 'a stranger knows this' });
      const turnOn = async (password: string) => {
        const { text } = await offerSecondFactor(people, personId, password);
        const timestamp = people.clock();
        await confirmSecondFactor(
          people,
          personId,
          new TOTP({ secret: Secret.fromBase32(text) }).generate({ timestamp }),
        );
      };
      await turnOn('a stranger knows this');
      const reset = async (next: string) =>
        resetPassword(people, (await mintPersonLink(people, personId, 'reset')).token, next, true);
      await reset('only the owner knows this');
      assert.equal((await signIn(email, 'only the owner knows this')).outcome, 'signed_in');
      const state = await loadPerson(people, personId);
      assert.ok(state !== null && state.emailProvenAt !== null && !state.secondFactor);
      await turnOn('only the owner knows this');
      await reset('another one of the owner');
      assert.equal((await signIn(email, 'another one of the owner')).outcome, 'second_factor');
    },
  );

  t('and what somebody began with the former one does not come after it', async () => {
    const { personId, email } = await personOf(world);
    const first = await signIn(email, goodPassword);
    assert.ok(first.outcome === 'signed_in');
    const before = await new People(world.pool, world.secrets).byId(personId);
    assert.ok(before !== null);
    const { token } = await mintPersonLink(people, personId, 'reset');
    await resetPassword(people, token, 'a brand new password');
    const { era } = first;
    const late = startSession(people, { personId, by: 'password', device: 'x', address: 'y', era });
    assert.match((await refusal(late)).message, /changed meanwhile/);
    assert.deepEqual(await listSessions(people, personId), []);
    const own = new People(world.pool, world.secrets);
    const again = { era, passwordHash: 'x', removes: { passkeys: false, secondFactor: false }, keep: null };
    const now = new Date(people.clock()).toISOString();
    assert.equal(await own.renew(personId, { ...again, now, reason: 'password_set' }), null);
    await own.offerTotp(before, Buffer.from('planted'));
    assert.equal((await own.byId(personId))?.totpSecret, null);
    assert.equal((await signIn(email, 'a brand new password')).outcome, 'signed_in');
  });

  t('does not cost the link, or an attempt, where too many passwords are checked at once', async () => {
    const { personId, email } = await personOf(world);
    const device = deviceToken(people, personId);
    const { token } = await mintPersonLink(people, personId, 'reset');
    const flood = floodOf(70, { known: true, owner: personId });
    // At once: the flood is over soon after the first.
    await Promise.all([
      assert.rejects(signIn(email, 'wrong', anAddress(), device), Unavailable),
      assert.rejects(resetPassword(people, token, 'a brand new password'), Unavailable),
    ]);
    await flood;
    assert.equal(await failuresOf(email, device), 0);
    assert.equal(await resetPassword(people, token, 'a brand new password'), personId);
  });

  t('is asked for by strangers as often as they like: five links an hour, and none that is open ends', async () => {
    const { personId } = await personOf(world);
    const entry = await mintPersonLink(people, personId, 'sign_in');
    const own = await mintAskedLink(people, personId, 'reset');
    assert.ok(own !== null);
    const asked = await Promise.all(Array.from({ length: 12 }, () => mintAskedLink(people, personId, 'reset')));
    assert.equal(asked.filter((one) => one !== null).length, 4, 'at once, too');
    assert.equal(await mintAskedLink(people, personId, 'reset'), null);
    // What an operator makes is another thing, and ends none of them.
    const byOperator = await mintPersonLink(people, personId, 'reset');
    assert.equal(await findPersonLink(people, entry.token, 'sign_in'), personId, 'another purpose');
    for (const { token } of [own, byOperator]) assert.equal(await findPersonLink(people, token, 'reset'), personId);
    await makeOlder(personId);
    assert.ok((await mintAskedLink(people, personId, 'reset')) !== null);
    assert.equal(await resetPassword(people, own.token, 'a brand new password'), null, 'the sixth ended the oldest');
    assert.equal(await resetPassword(people, byOperator.token, 'a brand new password'), personId);
  });

  t(
    'comes not through a link that expired, and a person has five for a purpose that are older than an hour',
    async () => {
      const { personId } = await personOf(world);
      const { token } = await mintPersonLink(people, personId, 'reset');
      world.clock.shiftMs += 3_600_001;
      assert.equal(await resetPassword(people, token, 'a brand new password'), null);
      world.clock.shiftMs -= 3_600_001;
      for (let at = 0; at < 8; at += 1) {
        await mintPersonLink(people, personId, 'sign_in');
        await makeOlder(personId);
      }
      await mintPersonLink(people, personId, 'sign_in');
      const { rows } = await world.pool.query(
        `select count(*)::int as n from auth.person_links where purpose = 'sign_in' and person_id = $1`,
        [personId],
      );
      assert.equal(rows[0].n, 5);
    },
  );
});

suite('a second factor', (t) => {
  const codeOf = (text: string, shift = 0): string =>
    new TOTP({ secret: Secret.fromBase32(text) }).generate({ timestamp: people.clock() + shift });
  const pendingOf = async (email: string): Promise<string> => {
    const first = await signIn(email, goodPassword);
    assert.ok(first.outcome === 'second_factor', first.outcome);
    return first.pending;
  };
  const withFactor = async () => {
    const made = await personOf(world);
    const { text } = await offerSecondFactor(people, made.personId, goodPassword);
    assert.equal((await signIn(made.email, goodPassword)).outcome, 'signed_in');
    const codes = await confirmSecondFactor(people, made.personId, codeOf(text));
    return { ...made, text, codes };
  };

  t('is asked for once it was proved, and each code works once', async () => {
    const { email, text, personId } = await withFactor();
    const pending = await pendingOf(email);
    const byCode = (code: string) => signInByCode(people, { pending, code, address: anAddress() });
    assert.equal((await byCode(codeOf(text))).outcome, 'wrong', 'the code that proved it was spent');
    assert.equal((await byCode('000000')).outcome, 'wrong');
    world.clock.shiftMs += 30_000;
    const code = codeOf(text);
    const both = await Promise.all([byCode(code), byCode(code)]);
    assert.deepEqual(both.map(({ outcome }) => outcome).sort(), ['signed_in', 'wrong']);
    const { state } = await world.store.load(person, personId);
    assert.ok(state.status === 'registered' && state.secondFactor);
  });

  t('may be a recovery code, each once', async () => {
    const { email, codes } = await withFactor();
    assert.equal(new Set(codes).size, 10);
    const pending = await pendingOf(email);
    const byCode = (code: string) => signInByCode(people, { pending, code, address: anAddress() });
    const typed = ` ${(codes[3] ?? '').toUpperCase().replaceAll('-', ' ')}`;
    const both = await Promise.all([byCode(typed), byCode(typed)]);
    assert.deepEqual(both.map(({ outcome }) => outcome).sort(), ['signed_in', 'wrong']);
  });

  t('waits after five wrong codes, whatever address sends them', async () => {
    const { email, text } = await withFactor();
    const pending = await pendingOf(email);
    for (let at = 0; at < 5; at += 1) {
      assert.equal((await signInByCode(people, { pending, code: '123456', address: anAddress() })).outcome, 'wrong');
    }
    world.clock.shiftMs += 60_000;
    await noTimePassed();
    const late = signInByCode(people, { pending, code: codeOf(text), address: anAddress() });
    assert.ok((await refusal(late)) instanceof TooManyAttempts);
    await letTimePass();
  });

  t(
    'makes no browser wait for its address, or for the codes of others, in which the person has signed in',
    async () => {
      const { personId, email, text } = await withFactor();
      const pending = await pendingOf(email);
      const address = anAddress();
      for (let at = 0; at < 20; at += 1) await signIn(`factor${at}@example.com`, 'wrong', address);
      for (let at = 0; at < 5; at += 1) await signInByCode(people, { pending, code: '123456', address: anAddress() });
      world.clock.shiftMs += 60_000;
      await noTimePassed();
      const step = { pending, code: codeOf(text), address };
      assert.ok((await refusal(signInByCode(people, step))) instanceof TooManyAttempts);
      const ofOther = { ...step, knownDevice: deviceToken(people, uuidv7()) };
      assert.ok((await refusal(signInByCode(people, ofOther))) instanceof TooManyAttempts);
      const knownDevice = deviceToken(people, personId);
      assert.equal((await signInByCode(people, { ...step, knownDevice })).outcome, 'signed_in');
      await letTimePass();
    },
  );

  t('takes no step that a former password began', async () => {
    const { personId, email, text } = await withFactor();
    const pending = await pendingOf(email);
    const { token } = await mintPersonLink(people, personId, 'reset');
    await resetPassword(people, token, 'a brand new password');
    const code = codeOf(text, 30_000);
    assert.equal((await signInByCode(people, { pending, code, address: anAddress() })).outcome, 'expired');
  });

  t('takes no step that expired, was altered, or is of another form', async () => {
    const { email, text, personId } = await withFactor();
    const pending = await pendingOf(email);
    world.clock.shiftMs += 5 * 60_000 + 1;
    const at = (sealed: string) => signInByCode(people, { pending: sealed, code: codeOf(text), address: anAddress() });
    for (const sealed of [pending, '', `${pending}x`, deviceToken(people, personId), 'a.b.c']) {
      assert.equal((await at(sealed)).outcome, 'expired');
    }
    assert.equal((await at(await pendingOf(email))).outcome, 'signed_in');
  });

  t('is removed with the password and a code, and new recovery codes end the former ones', async () => {
    const { email, personId, codes } = await withFactor();
    assert.equal((await refusal(offerSecondFactor(people, personId, goodPassword))).code, 'validation_failed');
    const fresh = await replaceRecoveryCodes(people, personId, goodPassword);
    const remove = (code: string) => removeSecondFactor(people, personId, { password: goodPassword, code });
    assert.equal((await refusal(remove(codes[0] ?? ''))).code, 'validation_failed');
    await remove(fresh[0] ?? '');
    assert.equal((await signIn(email, goodPassword)).outcome, 'signed_in');
    assert.equal((await refusal(replaceRecoveryCodes(people, personId, goodPassword))).code, 'validation_failed');
  });
});

suite('what is stored of a person', (t) => {
  t.after(() => world.close());

  t('shows no password, code, secret or address', async () => {
    const email = 'canary.person@example.com';
    const password = 'canary password phrase';
    const { personId } = await personOf(world, { email, password, name: 'Canary Q. Person' });
    const { text } = await offerSecondFactor(people, personId, password);
    const { secret } = await startSession(people, { personId, by: 'password', device: 'd', address: 'a' });
    const { token } = await mintPersonLink(people, personId, 'reset');
    const { rows: tables } = await world.pool.query<{ name: string }>(
      `select table_schema || '.' || table_name as name from information_schema.tables
       where table_schema in ('auth', 'es', 'ops') and table_type = 'BASE TABLE'`,
    );
    const seed = Buffer.from(new Secret({ buffer: Secret.fromBase32(text).buffer }).bytes).toString('hex');
    const shapes = [email, password, 'Canary Q. Person', text, seed, secret, token];
    const words = [...shapes, ...shapes.map((word) => Buffer.from(word).toString('hex'))];
    for (const { name } of tables) {
      const { rows } = await world.pool.query<{ text: string }>(`select t::text as text from ${name} t`);
      const all = rows.map((row) => row.text).join('\n');
      for (const word of words) assert.ok(!all.includes(word), `${name} holds ${word}`);
    }
    assert.ok(!world.lines.join('\n').includes(password));
  });
});
