import { ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { accountSuite } from '#contracts/ports/platform-account.suite.ts';
import type { AskedAccount, Choice } from '#contracts/ports/platform-account.ts';
import { overrideRules } from '#domain/platforms/index.ts';
import { SandboxNetwork, sandboxAccounts, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

/** What the sandbox tells of an account: names as its networks show them, ids of the account's own. */

const account = (platform: Platform, username: string): AskedAccount => ({
  workspaceId: randomUUID(),
  id: randomUUID(),
  externalId: sandboxProfile(platform, username).externalId,
  username,
});
const labels: Readonly<Partial<Record<Platform, (account: AskedAccount) => readonly string[]>>> = {
  pinterest: () => ['Autumn', 'Home', 'Ideas', 'Recipes', 'Spring', 'Summer', 'Travel', 'Winter'],
  tiktok: ({ username }) => [username?.startsWith('private') ? 'Followers' : 'Everyone', 'Friends', 'Only you'],
  linkedin: ({ username }) => [String(username), `${username} second`],
};

const harness = async () => {
  const db = await preparedDatabase();
  const network = new SandboxNetwork({ database: { url: db.url, connections: 2 } });
  const all = new Map<string, readonly Choice[]>();
  return {
    source: {
      choices: async (...asked: Parameters<SandboxNetwork['choices']>) => {
        const answer = await network.choices(...asked);
        if (answer.kind === 'choices') all.set(asked[1].id, answer.choices);
        return answer;
      },
      facts: (...asked: Parameters<SandboxNetwork['facts']>) => network.facts(...asked),
    },
    facts: {
      has: (_platform: Platform, { username }: AskedAccount) => ({
        allows: {
          privacyLevel: [
            username?.startsWith('private') ? 'FOLLOWER_OF_CREATOR' : 'PUBLIC_TO_EVERYONE',
            ...['MUTUAL_FOLLOW_FRIENDS', 'SELF_ONLY'],
          ],
        },
        maxDurationMs: 600_000,
      }),
      stopped: async (platform: Platform, until: 'an instant' | 'its owner') =>
        account(platform, until === 'an instant' ? 'capped-acme' : 'banned-acme'),
    },
    platforms,
    account: (platform: Platform, fault?: string) =>
      account(platform, fault === undefined ? 'acme' : `${fault.replaceAll('_', '-')}-acme`),
    other: (platform: Platform) => account(platform, 'private-other'),
    has: (platform: Platform, asked: AskedAccount) => {
      const listed = all.get(asked.id) ?? [];
      const expected = labels[platform]?.(asked);
      if (expected !== undefined) {
        return new Map(
          expected.map((label) => [listed.find((one) => one.label === label)?.value ?? `no ${label}`, label]),
        );
      }
      const rule = overrideRules('youtube').categoryId;
      ok(platform === 'youtube' && rule?.type === 'enum');
      return new Map(rule.values.map((value) => [value, listed.find((one) => one.value === value)?.label ?? 'none']));
    },
    crowded: async (platform: Platform) =>
      platform === 'pinterest' ? { account: account(platform, 'many-boards-acme'), key: 'boardId' } : null,
    close: async () => {
      await network.close();
      await db.drop();
    },
  };
};

suite('the sandbox as a source of what accounts may choose', (t) => {
  accountSuite(t, harness);
});

suite('the sandbox as the api asks it', (t) => {
  t('boards are those of one account, and stay the same', async () => {
    const db = await preparedDatabase();
    const pool = openPool({ url: db.url, max: 2, name: 'accounts' });
    const source = sandboxAccounts(pool);
    const boards = async (username: string) => {
      const answer = await source.choices(
        'pinterest',
        account('pinterest', username),
        'boardId',
        AbortSignal.timeout(5_000),
      );
      ok(answer.kind === 'choices');
      return new Map(answer.choices.map(({ label, value }) => [label, value]));
    };
    const [own, again, other] = [await boards('acme'), await boards('acme'), await boards('other')];
    ok(own.get('Recipes') !== undefined && own.get('Recipes') === again.get('Recipes'));
    ok([...own.values()].every((value) => /^\d{18}$/.test(value)));
    ok(other.get('Recipes') !== own.get('Recipes'));
    await pool.end();
    await db.drop();
  });
});
