import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { maxPasskeys, person } from '#domain/person.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { beginAttempt, ofAddress, TooManyAttempts } from '#services/auth/people/attempts.ts';
import { type PeopleDeps, personContext } from '#services/auth/people/deps.ts';
import {
  addPasskey,
  askForPasskey,
  listPasskeys,
  offerPasskey,
  removePasskey,
  signInByPasskey,
} from '#services/auth/people/passkeys.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { sealStep } from '#services/auth/people/sealed-forms.ts';
import { resetPassword } from '#services/auth/people/security.ts';
import { deviceToken } from '#services/auth/people/sign-in.ts';
import { Authenticator } from '#test/support/authenticator.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

const origin = 'https://console.example.com';
const stranger = 'https://console.evil.example';
const party = { origin };

suite('passkeys', (t) => {
  let world: World;
  let people: PeopleDeps;
  t.before(async () => {
    world = await startWorld();
    people = peopleDepsOf(world);
  });
  t.after(() => world?.close());

  const offered = async (personId: string) =>
    offerPasskey(people, party, { personId, email: 'ann@example.com', name: 'Ann' });
  const added = async (device = new Authenticator()) => {
    const { personId } = await personOf(world);
    const { options, sealed } = await offered(personId);
    const response = device.register({ challenge: options.challenge, origin });
    const passkey = await addPasskey(people, party, { personId, sealed, response, name: ' My laptop ' });
    return { personId, device, passkey, sealed, response };
  };
  let addresses = 0;
  const address = (): string => {
    addresses += 1;
    return `198.51.100.${addresses}`;
  };
  const signIn = async (device: Authenticator, more: Partial<Parameters<Authenticator['signIn']>[0]> = {}) => {
    const { options, sealed } = await askForPasskey(people, party);
    const response = device.signIn({ challenge: options.challenge, origin, ...more });
    return {
      sealed,
      response,
      personId: (await signInByPasskey(people, party, { sealed, response, address: address() }))?.personId ?? null,
    };
  };

  t('sign their person in, and are listed with their last use', async () => {
    const { personId, device, passkey } = await added();
    assert.deepEqual([passkey.name, passkey.lastUsedAt], ['My laptop', null]);
    assert.equal((await signIn(device)).personId, personId);
    const [listed] = await listPasskeys(world.pool, personId);
    assert.equal(listed?.id, passkey.id);
    assert.notEqual(listed?.lastUsedAt, null);
    const { state } = await world.store.load(person, personId);
    assert.ok(state.status === 'registered' && state.passkeyIds.includes(passkey.id));
  });

  t('keep the ways to reach a device that there are, whatever its browser says', async () => {
    for (const transports of [['usb', '\0', 5, 'x'.repeat(5_000), 'internal'], 'usb', { length: 2 }]) {
      const { personId } = await personOf(world);
      const { options, sealed } = await offered(personId);
      const made = new Authenticator().register({ challenge: options.challenge, origin });
      const response = { ...made, response: { ...made.response, transports: transports as never } };
      await addPasskey(people, party, { personId, sealed, response, name: '' });
      const [known] = (await offered(personId)).options.excludeCredentials ?? [];
      assert.deepEqual(known?.transports, Array.isArray(transports) ? ['usb', 'internal'] : []);
    }
  });

  t('of the synced kind, which count nothing, sign in again and again', async () => {
    const { personId, device } = await added(new Authenticator(null));
    for (let at = 0; at < 3; at += 1) assert.equal((await signIn(device)).personId, personId);
  });

  t('take each answer once, however its form is spelt', async () => {
    const { personId, device } = await added(new Authenticator(null));
    const first = await signIn(device);
    assert.equal(first.personId, personId);
    const { response } = first;
    // The reader of base64url skips what is none: other texts open to the same.
    for (const sealed of [first.sealed, `${first.sealed}=`, `${first.sealed}!`, `${first.sealed} `]) {
      assert.equal(await signInByPasskey(people, party, { sealed, response, address: address() }), null, sealed);
    }
  });

  t(
    'are refused from another origin, without a verified person, with another challenge, or once the counter fell',
    async () => {
      const { device } = await added();
      assert.equal((await signIn(device, { origin: stranger })).personId, null);
      assert.equal((await signIn(device, { verified: false })).personId, null);
      assert.equal((await signIn(device, { challenge: 'another' })).personId, null);
      assert.notEqual((await signIn(device)).personId, null);
      device.counter = 0;
      assert.equal((await signIn(device)).personId, null, 'a copy of the device');
      assert.equal((await signIn(new Authenticator())).personId, null, 'nobody’s');
    },
  );

  t('make no browser wait for its address in which a person has signed in', async () => {
    const { personId, device } = await added();
    const shared = address();
    for (let at = 0; at < 20; at += 1) await beginAttempt(world.pool, ofAddress(shared));
    const ask = async (knownDevice: string | null) => {
      const { options, sealed } = await askForPasskey(people, party);
      const response = device.signIn({ challenge: options.challenge, origin });
      await world.pool.query(`update auth.attempts set last_at = now() + interval '1 minute'`);
      return signInByPasskey(people, party, { sealed, response, address: shared, knownDevice });
    };
    for (const none of [null, 'x', sealStep(people, 'device', personId)]) {
      await assert.rejects(ask(none), TooManyAttempts);
    }
    for (let at = 0; at < 25; at += 1) {
      assert.equal((await ask(deviceToken(people, personId)))?.personId, personId, 'what was right does not count');
    }
  });

  t('expire with their form, and take no form of another step', async () => {
    const { personId, device } = await added();
    const { options, sealed } = await askForPasskey(people, party);
    const response = device.signIn({ challenge: options.challenge, origin });
    world.clock.shiftMs += 5 * 60_000 + 1;
    assert.equal(await signInByPasskey(people, party, { sealed, response, address: address() }), null);
    const toAdd = await offered(personId);
    const wrong = device.signIn({ challenge: toAdd.options.challenge, origin });
    const ask = { sealed: toAdd.sealed, response: wrong, address: address() };
    assert.equal(await signInByPasskey(people, party, ask), null);
  });

  t('that were begun before a new password come not after it', async () => {
    const { personId } = await personOf(world);
    const { options, sealed } = await offered(personId);
    const { token } = await mintPersonLink(people, personId, 'reset');
    await resetPassword(people, token, 'a brand new password', true);
    const response = new Authenticator().register({ challenge: options.challenge, origin });
    await assert.rejects(addPasskey(people, party, { personId, sealed, response, name: '' }), /changed meanwhile/);
    assert.deepEqual(await listPasskeys(world.pool, personId), []);
    const { state } = await world.store.load(person, personId);
    assert.ok(state.status === 'registered' && state.passkeyIds.length === 0, 'its place is free again');
  });

  t('are added by their person alone, once, and a bounded number', async () => {
    const { personId, device, sealed, response } = await added();
    const other = await personOf(world);
    const add = (of: string, more: { sealed: string; response: typeof response; name?: string }) =>
      addPasskey(people, party, { personId: of, name: '', ...more });
    await assert.rejects(add(personId, { sealed, response }), /took too long/);
    const theirs = await offered(other.personId);
    const again = device.register({ challenge: theirs.options.challenge, origin });
    await assert.rejects(add(personId, { sealed: theirs.sealed, response: again }), /took too long/);
    await assert.rejects(add(other.personId, { sealed: theirs.sealed, response: again }), /registered already/);
    const evil = await offered(personId);
    const foreign = new Authenticator().register({ challenge: evil.options.challenge, origin: stranger });
    await assert.rejects(add(personId, { sealed: evil.sealed, response: foreign }), /could not be verified/);
    for (let at = 1; at < maxPasskeys; at += 1) {
      const command = { type: 'AddPasskey', passkeyId: randomUUID() } as const;
      await execute(world.store, person, personId, command, personContext(people, personId));
    }
    const last = await offered(personId);
    const full = new Authenticator().register({ challenge: last.options.challenge, origin });
    await assert.rejects(add(personId, { sealed: last.sealed, response: full }), /at most 20/);
  });

  t('that are removed sign nobody in, and nobody removes those of another', async () => {
    const { personId, device, passkey } = await added();
    const other = await personOf(world);
    await removePasskey(people, other.personId, passkey.id);
    assert.equal((await signIn(device)).personId, personId);
    await removePasskey(people, personId, passkey.id);
    assert.equal((await signIn(device)).personId, null);
    assert.deepEqual(await listPasskeys(world.pool, personId), []);
  });
});
