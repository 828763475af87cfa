import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import { decodeToken, encodeToken, mergePositions, RecentWrites } from '#runtime/eventing/consistency.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { secretKey } from '#test/support/domain.ts';
import { suite } from '#test/support/suite.ts';

const secrets = new Secrets(secretKey());

suite('consistency', (t) => {
  t('a token carries positions through the caller', () => {
    const positions = new Map([
      ['posts-3', 2n ** 62n],
      ['workspace-0', 0n],
    ]);
    deepEqual(decodeToken(secrets, encodeToken(secrets, positions)), positions);
    deepEqual(decodeToken(secrets, encodeToken(secrets, new Map())), new Map());
  });

  t('nobody reads the positions in a token: they count the writes of all tenants', () => {
    const tokens = [7n, 123_456_789n].map((position) => encodeToken(secrets, new Map([['posts-3', position]])));
    for (const token of tokens) {
      for (const part of token.split('.')) ok(!Buffer.from(part, 'base64url').toString('latin1').includes('posts-3'));
    }
    // Their length tells nothing either, and a repeat shows no same text.
    equal(tokens[0]?.length, tokens[1]?.length);
    notEqual(encodeToken(secrets, new Map([['posts-3', 7n]])), tokens[0]);
  });

  t('a foreign or altered token counts as none', () => {
    const token = encodeToken(secrets, new Map([['posts-3', 7n]]));
    for (const other of ['', 'x', `${token}x`, token.slice(1), encodeToken(new Secrets(secretKey()), new Map())]) {
      equal(decodeToken(secrets, other), null, other);
    }
    equal(decodeToken(secrets, secrets.encrypt('cursors', 'posts-3=7')), null);
  });

  t('unknown members of a token are ignored', () =>
    deepEqual(
      decodeToken(secrets, secrets.encrypt('consistency', 'posts-3=7,posts-4,posts-5=,posts-6=-1,=8,posts-7=x')),
      new Map([
        ['posts-3', 7n],
        ['', 8n],
      ]),
    ),
  );

  t('merging keeps the highest position of each lane', () => {
    const into = new Map([
      ['a', 5n],
      ['b', 5n],
    ]);
    mergePositions(
      into,
      new Map([
        ['a', 4n],
        ['b', 6n],
        ['c', 1n],
      ]),
    );
    deepEqual(
      [...into],
      [
        ['a', 5n],
        ['b', 6n],
        ['c', 1n],
      ],
    );
  });

  t('remembers the writes of each credential, and forgets the one that wrote longest ago', () => {
    const recent = new RecentWrites(2);
    recent.remember('ann', new Map([['a', 1n]]));
    recent.remember('bob', new Map([['a', 2n]]));
    recent.remember('ann', new Map([['a', 3n]]));
    recent.remember('carl', new Map([['a', 4n]]));
    recent.remember('dora', new Map());
    deepEqual(recent.of('ann'), new Map([['a', 3n]]));
    deepEqual(recent.of('bob'), new Map());
    deepEqual(recent.of('carl'), new Map([['a', 4n]]));
    deepEqual(recent.of('nobody'), new Map());
  });
});
