import { randomBytes, randomUUID } from 'node:crypto';
import { pause } from '#contracts/base/pause.ts';
import type {
  Checkpoint,
  PlatformAdapter,
  PublishOutcome,
  PublishRequest,
  ReconcileOutcome,
} from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { Rejection } from '#domain/decider.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { behindWall } from '#runtime/work/publishing-wall.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import { type CheckPost, checkPostOf, lendingOf } from './check-post.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { idOf } from './find.ts';

/**
 * Publishes one real post and deletes it again, or leaves it there. It is no post of a caller: no stream, quota or figure knows of it. What
 * is out and where is said before each step, so that a person can end what this command does not live to end.
 */

/** Milliseconds that a deletion may take. */
const removalMs = 30_000;
/** Milliseconds that a network has to show a post that it accepted, and between two looks. */
const showMs = 600_000;
const lookMs = 2_000;

const published = (outcome: PublishOutcome) => (outcome.kind === 'published' ? outcome : null);

/** A network says what it likes, names included, and its words end in a terminal. */
const plain = (text: string): string => text.replaceAll(/\p{C}/gu, ' ').trim();
const wordsOf = ({ message, platformMessage }: Failure): string =>
  [message, platformMessage ?? '']
    .map(plain)
    .filter((text) => text !== '')
    .join(' The network says: ')
    .slice(0, 500);

const networkOf = (text: string): Platform => {
  const platform = platforms.find((one) => one === text);
  if (platform === undefined) throw new UsageError(`The network is one of ${platforms.join(', ')}.`);
  return platform;
};

interface Checked {
  readonly adapter: PlatformAdapter;
  readonly platform: Platform;
  readonly workspaceId: string;
  readonly account: PublishRequest['account'];
}

/** @throws Error: the account cannot be checked */
const accountOf = async ({ store, adapterOf, publishing }: Admin, { at, flag, has }: Given): Promise<Checked> => {
  const platform = networkOf(at(0));
  const id = idOf(flag('account') ?? '', 'account');
  const { state, events } = await store.load(account, id);
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such account.');
  if (state.platform !== platform) throw new UsageError(`This is an account of ${state.platform}.`);
  const refused = (words: string): Error => new Error(words);
  if (state.network === 'sandbox') throw refused('This account is one of the sandbox, which no network sees.');
  if (state.status !== 'connected') throw refused('The account must be connected anew first: make a connect link.');
  const plain = adapterOf(platform);
  const hold = await publishing.ofAll();
  if (hold !== null) throw refused(`Publishing is held by ${hold.by}: resume it first.`);
  const adapter = plain && behindWall(plain, async () => (await publishing.ofAll()) !== null);
  if (adapter === null) {
    throw refused(
      `This installation does not publish on ${platform}: npm run doctor -- networks says what is missing.`,
    );
  }
  const by = { id, externalId: state.externalId, username: state.username };
  const canRemove = adapter.removePost !== undefined && (await adapter.canRemove?.(by)) !== false;
  if (!canRemove && !has('leave-it')) {
    throw new UsageError(
      `${rulesOf(platform).name} lets no program delete a post: add --leave-it, and delete it there by hand.`,
    );
  }
  const workspaceId = events[0]?.metadata.workspaceId ?? '';
  return { adapter, platform, workspaceId, account: by };
};

export const checkNetwork = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const checked = await accountOf(admin, given);
  const { adapter, platform, account: by } = checked;
  const { confirm, note } = admin;
  const mark = `(${randomBytes(4).toString('hex')})`;
  const isLeft = given.has('leave-it');
  const content = `A test of our publishing software. This post is deleted ${isLeft ? 'by hand' : 'in a moment'}. ${mark}`;
  const lending = lendingOf(admin, checked.workspaceId, by);
  const more = await checkPostOf(platform, content, given, lending);
  const who = plain(by.username ?? by.externalId);
  if (!given.has('yes')) {
    if (confirm === null) throw new UsageError('This publishes a real post: add --yes to do it without being asked.');
    const then = isLeft ? 'leave it there' : 'delete it again';
    if (!(await confirm(`Publish “${content}” on ${platform} as ${who}, and ${then}?`))) {
      throw new Error('Nothing was published.');
    }
  }
  const ends = isLeft ? 'Delete' : 'If this ends before it says "deleted", delete';
  note(`Publishing on ${platform} as ${who}. ${ends} the post with ${mark} by hand.`);
  const post = await publishOnce(admin, checked, { content, ...more }, mark).finally(lending.end);
  const where = plain(post.permalink ?? post.externalId);
  note(`Published: ${where}`);
  faultPoint('admin:between-publish-and-removal');
  if (isLeft || adapter.removePost === undefined) {
    return { network: platform, account: by.id, published: where, deleted: false };
  }
  const { externalId } = post;
  const removal = await adapter.removePost({ platform, account: by, externalId }, AbortSignal.timeout(removalMs));
  if (removal.kind === 'not_removed') {
    throw new Error(
      `The post may still be there: ${where}\n${wordsOf(removal.failure)}\nOpen it as ${who}, and delete it there.`,
    );
  }
  note('deleted');
  return { network: platform, account: by.id, published: where, deleted: true };
};

type Shown = Pick<Extract<PublishOutcome, { kind: 'published' }>, 'externalId' | 'permalink'>;

/** Asks until the network shows or refuses what it accepted. @throws Error that says what may be out */
const shown = async (
  { signal, operator, note }: Admin,
  ask: () => Promise<ReconcileOutcome>,
  lookFor: string,
): Promise<Shown> => {
  note('The network accepted the post and does not show it yet. It is asked for ten minutes.');
  const until = operator.clock() + showMs;
  for (;;) {
    const found = await ask();
    if (found.kind === 'present') return found;
    if (found.kind === 'failed') {
      throw new Error(`The network refused the post after it had looked at it. ${wordsOf(found.failure)}`);
    }
    if (signal.aborted || operator.clock() > until) {
      throw new Error(`The network has not shown the post yet, so it may come out later.\n${lookFor}`);
    }
    await pause(lookMs, signal);
  }
};

/** One attempt, and where its answer is lost one question. @throws Error that says what is out */
const publishOnce = async (
  admin: Admin,
  { adapter, platform, workspaceId, account: by }: Checked,
  post: CheckPost & { readonly content: string },
  mark: string,
): Promise<Shown> => {
  const { signal, operator } = admin;
  const checkpoints: Checkpoint[] = [];
  const request: PublishRequest = {
    ...{
      workspaceId,
      targetId: randomUUID(),
      attempt: 1,
      platform,
      account: by,
      ...post,
      aiDisclosure: false,
    },
    ...{ cover: null, coverFrameMs: null, thread: null, checkpoints },
  };
  const outcome = await adapter.publish(request, {
    signal,
    moved: () => undefined,
    checkpoint: async (step, data) => void checkpoints.push({ attempt: 1, step, data, deadline: null }),
    boundary: async (data) => {
      signal.throwIfAborted();
      const deadline = new Date(operator.clock() + adapter.boundaryDeadlineMs).toISOString();
      checkpoints.push({ attempt: 1, step: 'boundary', data, deadline });
      return AbortSignal.timeout(adapter.boundaryDeadlineMs);
    },
  });
  const known = published(outcome);
  if (known !== null) return known;
  const words = 'failure' in outcome ? wordsOf(outcome.failure) : '';
  const boundary = checkpoints.findLast(({ step }) => step === 'boundary');
  const lookFor = `Look for a post with ${mark} on the account, and delete it there.`;
  if (outcome.kind === 'accepted' && boundary !== undefined) {
    return shown(admin, () => adapter.reconcile(request, boundary, outcome.handle), lookFor);
  }
  if (outcome.kind !== 'unknown' || boundary === undefined) throw new Error(`Nothing was published. ${words}`);
  const found = await adapter.reconcile(request, boundary);
  if (found.kind === 'present') return found;
  throw new Error(`The network did not answer, so the post may be out. ${words}\n${lookFor}`);
};
