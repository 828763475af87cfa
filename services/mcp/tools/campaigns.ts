import { type Static, Type } from 'typebox';
import type { Campaign as CampaignSchema } from '#schemas/http/campaign.ts';
import type { CampaignPostsResult as PostsSchema } from '#schemas/http/campaign-posts.ts';
import type { CampaignShiftResult as ShiftSchema } from '#schemas/http/campaign-shift.ts';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { changes, reads, tool } from '../tool.ts';
import {
  Args,
  Id,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  PlainKey,
  pageOf,
  plainPaging,
  Replayed,
  replayedWords,
  Text,
} from '../words.ts';
import { defined } from './composing.ts';

/** Names under which posts are planned, and by which their times are moved together. */

type Campaign = Static<typeof CampaignSchema>;

interface Found {
  readonly campaigns: readonly Campaign[];
  readonly nextCursor: string | null;
}

const byName = async (call: ToolCall, clientId: string | undefined, search: string): Promise<Found> => {
  const wanted = search.toLowerCase();
  const found = await call.search<Campaign>('listCampaigns', { clientId }, ({ name }) =>
    name.toLowerCase().includes(wanted),
  );
  return { campaigns: call.cuts.rows('campaigns', found, 50), nextCursor: null };
};

export const findCampaigns = tool({
  name: 'find_campaigns',
  title: 'Find campaigns',
  description:
    'Finds campaigns by client or part of their name, newest first, and answers their ids, days and number of posts. find_posts with a campaignId has their posts; change_campaign moves them together.',
  scopes: ['campaigns.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id('Only campaigns of this client.')),
    search: Maybe(Type.String()),
    ...plainPaging,
  }),
  output: Type.Object({
    mode: Mode,
    campaigns: Type.Array(
      Type.Object({
        campaignId: Type.String(),
        name: Type.String(),
        clientId: Nullable(Type.String(), 'Null: posts of every client.'),
        startsOn: Nullable(Type.String()),
        endsOn: Nullable(Type.String()),
        postCount: Type.Integer(),
      }),
    ),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { clientId, search, ...page }) => {
    const list = async (): Promise<Found> => {
      const { data, page: at } = await call.invoke<Campaign[]>('listCampaigns', {
        query: { clientId, ...pageOf(page) },
      });
      return { campaigns: data, nextCursor: at?.nextCursor ?? null };
    };
    const found = search === undefined ? await list() : await byName(call, clientId, search);
    const campaigns = found.campaigns.map(({ id, name, clientId: of, startsOn, endsOn, postCount }) => ({
      ...{ campaignId: id, name, clientId: of, startsOn, endsOn, postCount },
    }));
    const nextStep =
      campaigns.length === 0
        ? 'No campaign fits. change_campaign with action create makes one.'
        : 'Use the campaignId with find_posts, compose_post or change_campaign.';
    const lines = campaigns.map(
      ({ campaignId, name, startsOn, endsOn, postCount }) =>
        `- ${call.cuts.quoted('name', name)} (campaignId ${campaignId}): ${many(postCount, 'post')}${startsOn === null ? '' : `, from ${startsOn}`}${endsOn === null ? '' : `, to ${endsOn}`}`,
    );
    const text = joined(
      `${many(campaigns.length, 'campaign')} (${call.mode}).`,
      ...lines,
      moreOf(found.nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, campaigns, nextCursor: found.nextCursor, nextStep } };
  },
});

const fields = {
  name: Maybe(Text(200, 'Needed to create.')),
  startsOn: Maybe(Type.String({ format: 'date' })),
  endsOn: Maybe(Type.String({ format: 'date' })),
  description: Maybe(Type.String()),
};

const Change = Args({
  action: Type.Enum(['create', 'update', 'move', 'add_posts', 'remove_posts', 'delete'], {
    description:
      'create, update: name, days, description; move: its targets that are not out; add_posts, remove_posts: postIds; delete: the campaign alone, its posts stay.',
  }),
  campaignId: Maybe(Id('The campaign. Needed but to create.')),
  clientId: Maybe(Id('To create: it then takes only posts of this client.')),
  ...fields,
  days: Maybe(Type.Integer({ description: 'To move: by so many days, each at its time of day; negative: earlier.' })),
  minutes: Maybe(Type.Integer({ description: 'To move: by so many minutes instead.' })),
  postIds: Maybe(Type.Array(Id(), { minItems: 1, maxItems: 100, description: 'Posts to add or remove.' })),
  idempotencyKey: PlainKey,
});
type Change = Static<typeof Change>;
type Action = Change['action'];

const about = ['name', 'startsOn', 'endsOn', 'description'] as const;
const taken: Readonly<Record<Action, readonly (keyof Change)[]>> = {
  create: ['clientId', ...about],
  update: ['campaignId', ...about],
  move: ['campaignId', 'days', 'minutes'],
  add_posts: ['campaignId', 'postIds'],
  remove_posts: ['campaignId', 'postIds'],
  delete: ['campaignId'],
};

/** An argument that does nothing shows that one of the two is a mistake. @throws Refusal 422 */
const requireFit = ({ action, idempotencyKey: _key, ...args }: Change): void => {
  const strange = (Object.keys(args) as (keyof Change)[]).find(
    (name) => !taken[action].includes(name) && args[name as keyof typeof args] !== undefined,
  );
  if (strange !== undefined) throw invalid(`/${strange}`, 'exclusive', `does nothing with action ${action}`);
  if (action !== 'create' && args.campaignId === undefined) {
    throw invalid('/campaignId', 'required', 'is missing: find_campaigns has it');
  }
  if (action === 'move' && (args.days === undefined) === (args.minutes === undefined)) {
    throw invalid('/days', 'exclusive', 'send exactly one of days and minutes');
  }
};

interface Done {
  readonly words: string;
  readonly campaignId: string;
  readonly doneInAll: number;
  readonly refused: readonly { readonly id: string; readonly reason: string }[];
  readonly replayed: boolean;
  readonly nextStep: string;
}

const written = async (call: ToolCall, args: Change): Promise<Done> => {
  const { action, campaignId = '', clientId, name, startsOn, endsOn, description } = args;
  const body = defined({ name, startsOn, endsOn, description });
  const asked =
    action === 'create'
      ? call.invoke<Campaign>('createCampaign', {
          body: { ...body, ...defined({ clientId }) },
          key: call.key('create'),
        })
      : action === 'update'
        ? call.invoke<Campaign>('updateCampaign', { params: { id: campaignId }, body })
        : call.invoke<Campaign>('deleteCampaign', { params: { id: campaignId } });
  const { data, replayed } = await asked;
  const nextStep =
    action === 'delete'
      ? 'Its posts keep their times: find_posts and cancel end them, if the person wants that.'
      : 'compose_post with this campaignId adds a post, add_posts those that exist.';
  const words = `The campaign ${call.cuts.quoted('name', data.name)} is ${action}d`;
  return { words, campaignId: data.id, doneInAll: 1, refused: [], replayed, nextStep };
};

const moved = async (call: ToolCall, { campaignId = '', days, minutes }: Change): Promise<Done> => {
  const asked = { params: { id: campaignId }, body: defined({ days, minutes }), key: call.key('step') };
  const { data, replayed } = await call.invoke<Static<typeof ShiftSchema>>('shiftCampaign', asked);
  return {
    words: `${many(data.shifted, 'target')} moved by ${days === undefined ? many(minutes ?? 0, 'minute') : many(days, 'day')}, ${data.skippedCount} not`,
    ...{ campaignId: data.campaignId, doneInAll: data.shifted, replayed },
    refused: data.skipped.map(({ targetId, reason }) => ({ id: targetId, reason })),
    nextStep: 'find_posts with this campaignId has its posts; drafts are not moved, revise_post changes them.',
  };
};

const joining = async (call: ToolCall, { action, campaignId = '', postIds = [] }: Change): Promise<Done> => {
  const operation = action === 'add_posts' ? 'assignCampaignPosts' : 'unassignCampaignPosts';
  const asked = { params: { id: campaignId }, body: { postIds }, key: call.key('change') };
  const { data, replayed } = await call.invoke<Static<typeof PostsSchema>>(operation, asked);
  const done = data.results.filter(({ ok }) => ok).length;
  return {
    words: `${many(done, 'post')} ${action === 'add_posts' ? 'added' : 'removed'}`,
    ...{ campaignId: data.campaignId, doneInAll: done, replayed },
    refused: data.results.flatMap(({ postId, error }) =>
      error === undefined ? [] : [{ id: postId, reason: error.detail ?? error.title }],
    ),
    nextStep: 'find_posts with this campaignId has its posts.',
  };
};

export const changeCampaign = tool({
  name: 'change_campaign',
  title: 'Create, change or move a campaign',
  description:
    'Creates, changes or deletes a campaign, adds posts to it or removes them, or moves all of its targets that are not out by days or minutes (“a day later”). The same move twice is done once: for another one send a new idempotencyKey. It cancels no post: cancel does.',
  scopes: ['campaigns.manage'],
  hints: { ...changes, destructiveHint: true },
  input: Change,
  output: Type.Object({
    mode: Mode,
    campaignId: Type.String(),
    doneInAll: Type.Integer(),
    refused: Type.Array(Type.Object({ id: Type.String(), reason: Type.String() }), {
      description: 'Targets or posts for which it was not possible.',
    }),
    replayed: Replayed,
    nextStep: Next,
  }),
  run: async (call, args) => {
    requireFit(args);
    const { action } = args;
    const change = action === 'move' ? moved : action.endsWith('_posts') ? joining : written;
    const { words, refused, ...done } = await change(call, args);
    const shown = [...call.cuts.rows('refused', refused, 25)];
    const text = joined(
      `${words} (${call.mode}), campaignId ${done.campaignId}.`,
      replayedWords(done.replayed),
      ...shown.map(({ id, reason }) => `- not ${id}: ${reason}`),
      done.nextStep,
    );
    return { text, data: { mode: call.mode, ...done, refused: shown } };
  },
});
