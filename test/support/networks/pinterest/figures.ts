import { type Answer, invalidRequest, refuse } from './answer.ts';
import { accessOf, emptyOf, type Request, single } from './request.ts';
import type { State } from './state.ts';
import { date, id, names, object, oneOf } from './strict.ts';

/** "Get user account", "Get user account analytics", "Get Pin analytics". */

const dayMs = 86_400_000;
const standard = [
  ...['IMPRESSION', 'OUTBOUND_CLICK', 'PIN_CLICK', 'SAVE', 'SAVE_RATE', 'TOTAL_COMMENTS', 'TOTAL_REACTIONS'],
  ...['USER_FOLLOW', 'PROFILE_VISIT'],
];
const video = [
  ...['IMPRESSION', 'OUTBOUND_CLICK', 'PIN_CLICK', 'SAVE', 'SAVE_RATE', 'VIDEO_MRC_VIEW', 'VIDEO_10S_VIEW'],
  ...['QUARTILE_95_PERCENT_VIEW', 'VIDEO_V50_WATCH_TIME', 'VIDEO_START', 'VIDEO_AVG_WATCH_TIME'],
  ...['TOTAL_COMMENTS', 'TOTAL_REACTIONS'],
];
/** Told over the whole life of a pin, beside the days that were asked for. */
const lifetime = ['TOTAL_COMMENTS', 'TOTAL_REACTIONS'];

const values: Readonly<Record<string, number>> = {
  ...{ IMPRESSION: 240, OUTBOUND_CLICK: 20, PIN_CLICK: 37, SAVE: 20, SAVE_RATE: 0.18 },
  ...{ TOTAL_COMMENTS: 2, TOTAL_REACTIONS: 10, USER_FOLLOW: 4, PROFILE_VISIT: 6 },
  ...{ VIDEO_MRC_VIEW: 20, VIDEO_10S_VIEW: 2, QUARTILE_95_PERCENT_VIEW: 8, VIDEO_V50_WATCH_TIME: 120_000 },
  ...{ VIDEO_START: 29, VIDEO_AVG_WATCH_TIME: 2_000 },
};
const valuesOf = (wanted: readonly string[]): Readonly<Record<string, number>> =>
  Object.fromEntries(wanted.map((name) => [name, values[name] ?? 0]));

export const me = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'user_accounts:read');
  emptyOf(request);
  object({ ad_account_id: id })(single(request.query), 'query');
  const person = state.people.get(personId);
  if (person === undefined) throw refuse('not_permitted');
  const { username, businessName: business_name, accountType: account_type } = person;
  return {
    status: 200,
    body: {
      ...{ id: personId, username, business_name, account_type, website_url: 'https://example.com', about: '' },
      ...{ profile_image: `https://i.pinimg.com/600x600_R/${personId}.jpg`, follower_count: 10, following_count: 3 },
      ...{ monthly_views: 163, pin_count: state.pins.length, board_count: state.boards.size },
    },
  };
};

/** The days that were asked for. @throws Refusal */
const daysOf = (state: State, query: Record<string, string>): readonly string[] => {
  const [from, to] = [query.start_date, query.end_date].map((one) => Date.parse(one ?? '')) as [number, number];
  const today = Math.floor(state.now() / dayMs) * dayMs;
  if (from < today - 90 * dayMs) throw invalidRequest('start_date cannot be more than 90 days back from today');
  if (to < from || to > from + 90 * dayMs || to > today) throw invalidRequest('end_date cannot be so');
  return Array.from({ length: (to - from) / dayMs + 1 }, (_, at) =>
    new Date(from + at * dayMs).toISOString().slice(0, 10),
  );
};

/** Some numbers are final after two days. */
const dailyOf = (state: State, days: readonly string[], wanted: readonly string[]) =>
  days.map((one) => ({
    data_status: state.now() - Date.parse(one) > 3 * dayMs ? 'READY' : 'ESTIMATE',
    date: one,
    metrics: valuesOf(wanted.filter((name) => !lifetime.includes(name) && name !== 'PROFILE_VISIT')),
  }));

export const pinAnalytics = (state: State, request: Request, pinId: string): Answer => {
  const { personId } = accessOf(state, request, 'boards:read', 'pins:read');
  emptyOf(request);
  const query = single(request.query);
  const metrics = names(...new Set([...standard, ...video]));
  object(
    {
      ...{ start_date: date, end_date: date, metric_types: metrics, ad_account_id: id },
      ...{ app_types: oneOf('ALL', 'MOBILE', 'TABLET', 'WEB'), split_field: oneOf('NO_SPLIT', 'APP_TYPE') },
    },
    ['start_date', 'end_date', 'metric_types'],
  )(query, 'query');
  const pin = state.pin(pinId);
  if (pin === null) throw refuse('pin_not_found_by_status');
  if (pin.personId !== personId) throw refuse('forbidden');
  const wanted = (query.metric_types ?? '').split(',');
  const fits = (known: readonly string[]): boolean => wanted.every((name) => known.includes(name));
  // The two sets of the reference exclude each other, and videos alone have the second.
  if (!fits(standard) && !(fits(video) && pin.kind === 'video')) {
    throw invalidRequest('Invalid pins analytics parameters.');
  }
  const days = daysOf(state, query);
  const summary_metrics = valuesOf(wanted.filter((name) => !lifetime.includes(name)));
  const lifetime_metrics = valuesOf(wanted.filter((name) => lifetime.includes(name)));
  const daily_metrics = dailyOf(state, days, wanted);
  return { status: 200, body: { all: { daily_metrics, summary_metrics, lifetime_metrics } } };
};

const ofAccount = ['ENGAGEMENT', 'ENGAGEMENT_RATE', 'OUTBOUND_CLICK_RATE', 'PIN_CLICK_RATE'];

export const accountAnalytics = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'user_accounts:read');
  emptyOf(request);
  const query = single(request.query);
  object(
    {
      ...{ start_date: date, end_date: date, ad_account_id: id },
      metric_types: names(...ofAccount, 'IMPRESSION', 'OUTBOUND_CLICK', 'PIN_CLICK', 'SAVE', 'SAVE_RATE'),
    },
    ['start_date', 'end_date'],
  )(query, 'query');
  if (state.people.get(personId)?.accountType !== 'BUSINESS') throw refuse('forbidden');
  const days = daysOf(state, query);
  const usual = ['IMPRESSION', 'OUTBOUND_CLICK', 'PIN_CLICK', 'SAVE', 'SAVE_RATE'];
  // Visits of the profile and figures of videos are told to those who name no figures.
  const wanted = query.metric_types?.split(',') ?? [...new Set([...usual, ...video, 'PROFILE_VISIT'])];
  const summary_metrics = valuesOf(wanted.filter((name) => !lifetime.includes(name)));
  return { status: 200, body: { all: { daily_metrics: dailyOf(state, days, wanted), summary_metrics } } };
};
