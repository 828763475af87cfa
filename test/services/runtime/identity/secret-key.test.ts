import { equal, match, throws } from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { secretKeyFile, secretKeyOf } from '#runtime/identity/secret-key.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { suite } from '#test/support/suite.ts';

suite('the secret key of a data folder', (t) => {
  let dir = '';
  t.before.each(() => {
    dir = mkdtempSync(path.join(tmpdir(), 'postline-key-'));
  });
  t.after(() => rmSync(dir, { recursive: true, force: true }));

  t('is made once in a new folder, also beside foreign files', () => {
    mkdirSync(path.join(dir, 'lost+found'));
    writeFileSync(path.join(dir, 'standalone.log'), '');
    writeFileSync(path.join(dir, 'secret.key.4711'), 'v1:half of one that died');
    const made = secretKeyOf(dir);
    match(made, /^v1:.{44}$/);
    equal(secretKeyOf(dir), made);
    equal(readFileSync(secretKeyFile(dir), 'utf8').trim(), made);
    equal(statSync(secretKeyFile(dir)).mode & 0o777, 0o600);
    equal(secretKeyOf(path.join(dir, 'deep', 'er')).length, made.length);
  });

  for (const data of ['pg.password', 'pg.location', 'cluster', 'analytics', 'blobs']) {
    t(`is never made again beside ${data}: the error names file and data`, () => {
      const made = secretKeyOf(dir);
      mkdirSync(path.join(dir, data));
      equal(secretKeyOf(dir), made);
      rmSync(secretKeyFile(dir));
      throws(
        () => secretKeyOf(dir),
        (error) =>
          error instanceof SetupError && error.message.includes(secretKeyFile(dir)) && error.message.includes(data),
      );
      equal(existsSync(secretKeyFile(dir)), false);
      writeFileSync(secretKeyFile(dir), `${made}\n`);
      equal(secretKeyOf(dir), made);
      rmSync(dir, { recursive: true });
      equal(secretKeyOf(dir) === made, false, 'a folder that was removed starts anew');
    });
  }

  for (const [what, text] of [
    ['empty, as a full disk leaves it', ''],
    ['cut short', 'v1:AAAA'],
    ['another file', '-----BEGIN PRIVATE KEY-----'],
  ] as const) {
    t(`a file that is ${what} is named in the error and not changed`, () => {
      writeFileSync(secretKeyFile(dir), text);
      throws(
        () => secretKeyOf(dir),
        (error) =>
          error instanceof SetupError &&
          error.message.includes(secretKeyFile(dir)) &&
          (text === '' || !error.message.includes(text)),
      );
      equal(readFileSync(secretKeyFile(dir), 'utf8'), text);
    });
  }

  t('a missing version is named, with the place where it was expected', () => {
    const secrets = new Secrets(secretKeyOf(dir), secretKeyFile(dir));
    secrets.demand(['v1']);
    throws(
      () => secrets.demand(['v1', 'v7']),
      (error) => error instanceof SetupError && /version v7 is not in .*secret\.key/.test(error.message),
    );
  });
});
