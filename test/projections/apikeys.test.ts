import { apiKeys } from '#projections/models/apikeys.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: apikeys', (t) => {
  t('api keys: created, rotated, revoked', async () => {
    const { id, memberId, clientId } = ids('id', 'memberId', 'clientId');
    const key = on('apikey', id);
    const hash = (letter: string): string => letter.repeat(64);
    const scopes = ['posts.read', 'posts.compose'];
    const until = instant(1000);
    const created = key('ApiKeyCreated', {
      memberId,
      name: 'ci',
      hash: hash('a'),
      prefix: 'sk_live_abcd',
      scopes,
      mode: 'live',
      expiresAt: instant(5000),
      clientIds: [clientId],
    });
    await given(created)
      .project(pool, apiKeys)
      .sees([
        {
          id,
          member_id: memberId,
          scopes,
          hash: hash('a'),
          expires_at: instant(5000),
          revoked_at: null,
          client_ids: [clientId],
        },
      ]);
    await given(
      created,
      key('ApiKeyRotated', { hash: hash('b'), prefix: 'sk_live_efgh', previousHash: hash('a'), previousUntil: until }),
      key('ApiKeyRevoked', {}),
    )
      .project(pool, apiKeys)
      .sees([{ id, hash: hash('b'), previous_hash: hash('a'), previous_until: until, revoked_at: instant(2) }]);
  });

  everyEventIsProjected(t, 'apikey');
});
