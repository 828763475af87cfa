import { type Static, Type } from 'typebox';
import { Rejection } from '#domain/decider.ts';
import { choicesOf, overrideRules, rulesOf } from '#domain/platforms/index.ts';
import { type Platform, roles } from '#schemas/common.ts';
import type { AccountOption, Account as AccountSchema } from '#schemas/http/account.ts';
import type { Agency as AgencySchema } from '#schemas/http/agency.ts';
import type { Quota as QuotaSchema } from '#schemas/http/quota.ts';
import type { ToolCall } from '../call.ts';
import { reads, tool } from '../tool.ts';
import { Args, Id, joined, Maybe, Mode, Next, Nullable, Platforms, Text } from '../words.ts';
import { localTime } from './post-words.ts';

/** Where an agent is and as whom it acts, and what it may set on each network. */

type Agency = Static<typeof AgencySchema>;
type Quota = Static<typeof QuotaSchema>;
type Account = Static<typeof AccountSchema>;
type Option = Static<typeof AccountOption>;

export const whoami = tool({
  name: 'whoami',
  title: 'Workspace, time and rights',
  description:
    'Tells the workspace, the time now and its zone, whether this is the sandbox or live, the role behind this credential and what is left of the month. Use it before “tomorrow” or “next week”.',
  scopes: ['agency.read'],
  hints: reads,
  input: Args({}),
  output: Type.Object({
    mode: Mode,
    workspace: Type.String(),
    role: Type.Enum([...roles]),
    now: Type.String(),
    timezone: Type.String(),
    clientIds: Nullable(Type.Array(Type.String()), 'The clients that it is limited to; null: all.'),
    quota: Nullable(
      Type.Object({
        limit: Nullable(Type.Integer()),
        used: Type.Integer(),
        remaining: Nullable(Type.Integer()),
        resetsAt: Type.String(),
      }),
      'Null: not to be seen with this credential.',
    ),
    nextStep: Next,
  }),
  run: async (call) => {
    const { data: agency } = await call.invoke<Agency>('getAgency');
    const { mode, role, clientIds } = call;
    const mayAsk = call.may('accounts.read') && clientIds === null;
    const read = mayAsk ? (await call.invoke<Quota>('getQuota')).data : null;
    const quota =
      read === null ? null : { limit: read.limit, used: read.used, remaining: read.remaining, resetsAt: read.resetsAt };
    const now = new Date(await call.workspaceNow()).toISOString();
    const { name: workspace, timezone } = agency;
    const nextStep = 'find_clients has the clients; each client and account may have a zone of its own.';
    const text = joined(
      `${JSON.stringify(workspace)} (${mode}), as ${role}.`,
      `Now it is ${now}, ${localTime(now, timezone)}.`,
      quota === null
        ? null
        : `Quota of the month: ${quota.remaining === null ? 'no limit' : `${quota.remaining} targets left until ${quota.resetsAt}`}.`,
      nextStep,
    );
    return {
      text,
      data: {
        mode,
        workspace,
        role,
        now,
        timezone,
        clientIds: clientIds === null ? null : [...clientIds],
        quota,
        nextStep,
      },
    };
  },
});

const settingsOf = (platform: Platform) =>
  Object.entries(overrideRules(platform)).map(([key, rule]) => ({
    ...{ platform, key },
    type: rule.type,
    values: rule.type === 'enum' ? [...rule.values] : null,
    default: rule.default ?? null,
    required: rule.required !== undefined && rule.required.fallback !== true,
    onlyAs: rule.uses === undefined ? null : [...rule.uses],
    about: rule.about,
  }));

const hasChoices = (platform: Platform): boolean => Object.keys(choicesOf(platform)).length > 0;

/** Accounts of which choices are shown, and choices of each. */
const maxAccounts = 5;
const maxOptions = 25;
/** Rows that are read of one account. */
const readOptions = 100;

const Choices = Type.Object({
  accountId: Type.String(),
  platform: Type.String(),
  key: Type.String(),
  options: Type.Array(Type.Object({ value: Type.String(), label: Type.String() })),
  problem: Nullable(Type.String()),
});
/** `username` stands in the text alone. */
type ShownChoices = Static<typeof Choices> & Pick<Account, 'username'>;

/** A network that tells nothing now hides no other: why it does not is shown in the place of its options. */
const choicesIn = async (
  call: ToolCall,
  { id, platform, username }: Account,
  key: string,
  search: string | undefined,
): Promise<ShownChoices> => {
  const about = { accountId: id, username, platform, key };
  try {
    const asked = { params: { id, key }, query: { search, limit: readOptions } };
    const { data, page } = await call.invoke<Option[]>('listAccountOptions', asked);
    const shown = call.cuts.rows(`options of ${key}`, data, maxOptions);
    const problem = page?.hasMore === true ? 'There are more than could be read: name one with search.' : null;
    return { ...about, options: shown.map(({ value, label }) => ({ value, label })), problem };
  } catch (error) {
    // The allowance of the caller is not the network's word.
    if (!(error instanceof Rejection) || error.code === 'rate_limited') throw error;
    return { ...about, options: [], problem: error.message };
  }
};

const choicesFor = async (
  call: ToolCall,
  platforms: readonly Platform[],
  clientId: string,
  search: string | undefined,
): Promise<readonly ShownChoices[]> => {
  const platform = platforms.filter(hasChoices);
  if (platform.length === 0) return [];
  const { data } = await call.invoke<Account[]>('listAccounts', { query: { clientId, platform, limit: readOptions } });
  const accounts = call.cuts.rows(
    'accounts',
    data.filter(({ status }) => status !== 'disconnected'),
    maxAccounts,
  );
  return Promise.all(
    accounts.flatMap((account) =>
      Object.keys(choicesOf(account.platform)).map((key) => choicesIn(call, account, key, search)),
    ),
  );
};

const choiceLines = (call: ToolCall, { accountId, username, platform, key, options, problem }: ShownChoices) => [
  `${platform} ${key} of ${call.cuts.quoted('username', username ?? 'erased')} (accountId ${accountId}):${problem === null ? '' : ` ${problem}`}`,
  ...options.map(({ value, label }) => `- ${call.cuts.quoted('label', label)}: ${value}`),
  options.length === 0 && problem === null ? '- none' : null,
];

export const networkSettings = tool({
  name: 'network_settings',
  title: 'Settings of networks',
  description:
    'Lists what can be set on these networks in `settings` of a variant: each key, its values and what it does; with clientId the boards and other choices of its accounts by name too. A key that the network does not know does nothing.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({
    platforms: Platforms('The networks.'),
    clientId: Maybe(Id()),
    search: Maybe(Text(200, 'Part of the name of a board or other choice.')),
  }),
  output: Type.Object({
    mode: Mode,
    settings: Type.Array(
      Type.Object({
        platform: Type.String(),
        key: Type.String(),
        type: Type.String(),
        values: Nullable(Type.Array(Type.String())),
        default: Nullable(Type.Union([Type.String(), Type.Boolean()])),
        required: Type.Boolean(),
        onlyAs: Nullable(Type.Array(Type.String()), 'Counts for these kinds of post alone.'),
        about: Type.String(),
      }),
    ),
    choices: Type.Array(Choices),
    nextStep: Next,
  }),
  run: async (call, { platforms, clientId, search }) => {
    const asked = [...new Set(platforms)];
    const settings = asked.flatMap(settingsOf);
    const shown = clientId === undefined ? [] : await choicesFor(call, asked, clientId, search);
    const choices = shown.map(({ username: _, ...one }) => one);
    const unnamed = clientId === undefined && asked.some(hasChoices);
    const nextStep = unnamed
      ? 'Call it with clientId for the values that its accounts may choose, then send them as settings in a variant.'
      : 'Send them as settings in a variant of this network: preview_post checks them.';
    const lines = settings.map(({ platform, key, type, values, required, onlyAs, about }) =>
      [
        `- ${platform} ${key} (${type}${required ? ', required' : ''}${onlyAs === null ? '' : `, only ${onlyAs.join(' or ')}`}): ${about}`,
        values === null ? '' : ` One of ${values.join(', ')}.`,
      ].join(''),
    );
    const text = joined(
      `Settings of ${asked.map((one) => rulesOf(one).name).join(', ')}:`,
      ...lines,
      ...shown.flatMap((one) => choiceLines(call, one)),
      nextStep,
    );
    return { text, data: { mode: call.mode, settings, choices, nextStep } };
  },
});
