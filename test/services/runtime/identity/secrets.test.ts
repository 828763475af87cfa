import { deepEqual, equal, notDeepEqual, notEqual, throws } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Secrets } from '#runtime/identity/secrets.ts';
import { secretKey } from '#test/support/domain.ts';
import { suite } from '#test/support/suite.ts';

const one = secretKey(1);
const two = secretKey(2);

suite('secrets', (t) => {
  t('has the first of the list as current and the last as oldest', () => {
    const secrets = new Secrets(`${two}, ${one}`);
    equal(secrets.current, 'v2');
    equal(secrets.oldest, 'v1');
    deepEqual(secrets.versions(), ['v2', 'v1']);
    equal(secrets.has('v1'), true);
    equal(secrets.has('v3'), false);
    equal(new Secrets(one).oldest, 'v1');
  });

  t('refuses a malformed list, and does not show it', () => {
    const short = randomBytes(31).toString('base64');
    for (const list of ['', 'v1', `v1:${short}`, `1${one.slice(1)}`, `${one}:x`, `${one},`, `${one} ${two}`]) {
      throws(
        () => new Secrets(list),
        (error: Error) => error.message.startsWith('SECRET_KEY must be') && !error.message.includes(short),
        list,
      );
    }
  });

  t('refuses two keys of one version', () => throws(() => new Secrets(`${one},${secretKey(1)}`), /SECRET_KEY.*twice/));

  t('derives another key for each purpose and version, the same one every time', () => {
    const secrets = new Secrets(`${two},${one}`);
    const again = new Secrets(`${one},${two}`);
    equal(secrets.subKey('cursors').length, 32);
    deepEqual(secrets.subKey('cursors', 'v1'), again.subKey('cursors'));
    notDeepEqual(secrets.subKey('cursors'), secrets.subKey('cursors', 'v1'));
    notDeepEqual(secrets.subKey('cursors'), secrets.subKey('wrapping'));
    notDeepEqual(secrets.mac('secrets', 'text'), secrets.mac('fingerprints', 'text'));
    deepEqual(secrets.mac('secrets', 'text', 'v1'), again.mac('secrets', 'text'));
  });

  t('names a removed version that is still in use', () =>
    throws(() => new Secrets(two).subKey('wrapping', 'v1'), /SECRET_KEY lacks version v1/),
  );

  t('opens its own sealed text, under the same purpose alone', () => {
    const secrets = new Secrets(one);
    const sealed = secrets.seal('cursors', 'päge 2\n{"a":1}');
    equal(secrets.open('cursors', sealed), 'päge 2\n{"a":1}');
    equal(secrets.open('consistency', sealed), null);
    equal(secrets.open('cursors', secrets.seal('cursors', '')), '');
  });

  t('opens text sealed before a rotation, until its key is removed', () => {
    const sealed = new Secrets(one).seal('cursors', 'page 2');
    const rotated = new Secrets(`${two},${one}`);
    equal(rotated.open('cursors', sealed), 'page 2');
    notEqual(rotated.seal('cursors', 'page 2'), sealed);
    equal(new Secrets(two).open('cursors', sealed), null);
    equal(new Secrets(secretKey(1)).open('cursors', sealed), null);
  });

  t('refuses altered and made-up text', () => {
    const secrets = new Secrets(`${two},${one}`);
    const sealed = secrets.seal('cursors', 'page 2');
    const [version = '', body = '', mac = ''] = sealed.split('.');
    for (let at = 0; at < sealed.length; at += 1) {
      const other = sealed[at] === 'A' ? 'B' : 'A';
      equal(secrets.open('cursors', sealed.slice(0, at) + other + sealed.slice(at + 1)), null, `character ${at}`);
    }
    const page3 = Buffer.from('page 3').toString('base64url');
    for (const text of [
      // Other spellings of the same bytes.
      ...['=', '!', ' ', '\n'].map((more) => `${sealed}${more}`),
      `${version}.${body}.!${mac}`,
      '',
      '.',
      '..',
      `${sealed}.`,
      `${version}.${body}`,
      `${version}.${body}.`,
      `${version}.${page3}.${mac}`,
      `v1.${body}.${mac}`,
      `__proto__.${body}.${mac}`,
    ]) {
      equal(secrets.open('cursors', text), null, text);
    }
  });
});
