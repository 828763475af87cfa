import type { TSchema } from 'typebox';
import { accountEvents } from './account.ts';
import { apikeyEvents } from './apikey.ts';
import { approvalEvents } from './approval.ts';
import { campaignEvents } from './campaign.ts';
import { clientEvents, clientnameEvents } from './client.ts';
import { externalrefEvents } from './externalref.ts';
import { grantEvents } from './grant.ts';
import { apikeyPublic, invitePublic } from './http/webhook-events/access.ts';
import { accountPublic } from './http/webhook-events/account.ts';
import { refreshPublic, reportPublic } from './http/webhook-events/analytics.ts';
import { approvalPublic } from './http/webhook-events/approval.ts';
import { campaignPublic } from './http/webhook-events/campaign.ts';
import { clientPublic } from './http/webhook-events/client.ts';
import type { PublicEvent } from './http/webhook-events/common.ts';
import { mediaPublic } from './http/webhook-events/media.ts';
import { postPublic } from './http/webhook-events/post.ts';
import { targetPublic } from './http/webhook-events/target.ts';
import { teamPublic } from './http/webhook-events/team.ts';
import { webhookPublic } from './http/webhook-events/webhook.ts';
import { workspacePublic } from './http/webhook-events/workspace.ts';
import { accountmetricsEvents, targetmetricsEvents } from './insights.ts';
import { inviteEvents } from './invite.ts';
import { mediaEvents } from './media.ts';
import { personEvents, personemailEvents, sessionEvents } from './person.ts';
import { postEvents } from './post.ts';
import { quotaEvents } from './quota.ts';
import { refreshEvents } from './refresh.ts';
import { reportEvents } from './report.ts';
import { requestEvents } from './request.ts';
import { targetEvents } from './target.ts';
import { targetcallsEvents } from './targetcalls.ts';
import { teaminviteEvents } from './teaminvite.ts';
import { kindOf, type Topic } from './topics.ts';
import type { Upcast } from './upcast.ts';
import { webhookEvents } from './webhook.ts';
import { workspaceEvents } from './workspace.ts';

/**
 * The table of stream kinds: the topic of each, its stored events and the public events made of them. Event names are on
 * disk for ever: add a version, never edit one.
 */

export interface EventDefinition {
  readonly schema: TSchema;
  /** The version that this code writes. */
  readonly version: number;
  /** Upcasts from version 1, 2 … `version − 1`, in order. */
  readonly upcasts: readonly Upcast[];
}

export type EventCatalogue = Readonly<Record<string, Readonly<Record<string, EventDefinition>>>>;

/** @param upcasts of the events that have more than one version: by type, from each version to the next */
export const versioned = (
  schemas: Readonly<Record<string, TSchema>>,
  upcasts: Readonly<Record<string, readonly Upcast[]>> = {},
): Record<string, EventDefinition> =>
  Object.fromEntries(
    Object.entries(schemas).map(([type, schema]) => {
      const steps = upcasts[type] ?? [];
      return [type, { schema, version: steps.length + 1, upcasts: steps }];
    }),
  );

export interface StreamKind {
  /** Null: the stream is only read by its id, and the log passes over it. */
  readonly topic: Topic | null;
  readonly events: Readonly<Record<string, EventDefinition>>;
  readonly publishes?: Readonly<Record<string, PublicEvent>>;
}

/** A kind without events is planned: its topic and its public events are promised already. */
export const streamKinds: Readonly<Record<string, StreamKind>> = {
  post: { topic: 'posts', events: versioned(postEvents), publishes: postPublic },
  target: { topic: 'posts', events: versioned(targetEvents), publishes: targetPublic },
  media: { topic: 'media', events: versioned(mediaEvents), publishes: mediaPublic },
  account: { topic: 'workspace', events: versioned(accountEvents), publishes: accountPublic },
  approval: { topic: 'posts', events: versioned(approvalEvents), publishes: approvalPublic },
  refresh: { topic: 'workspace', events: versioned(refreshEvents), publishes: refreshPublic },
  report: { topic: 'reports', events: versioned(reportEvents), publishes: reportPublic },
  client: { topic: 'workspace', events: versioned(clientEvents), publishes: clientPublic },
  campaign: { topic: 'posts', events: versioned(campaignEvents), publishes: campaignPublic },
  workspace: {
    topic: 'workspace',
    events: versioned(workspaceEvents),
    publishes: { ...workspacePublic, ...teamPublic },
  },
  webhook: { topic: 'webhooks', events: versioned(webhookEvents), publishes: webhookPublic },
  apikey: { topic: 'workspace', events: versioned(apikeyEvents), publishes: apikeyPublic },
  grant: { topic: 'workspace', events: versioned(grantEvents) },
  clientname: { topic: 'workspace', events: versioned(clientnameEvents) },
  invite: { topic: 'workspace', events: versioned(inviteEvents), publishes: invitePublic },
  teaminvite: { topic: 'workspace', events: versioned(teaminviteEvents) },
  person: { topic: null, events: versioned(personEvents) },
  personemail: { topic: null, events: versioned(personemailEvents) },
  session: { topic: null, events: versioned(sessionEvents) },
  externalref: { topic: null, events: versioned(externalrefEvents) },
  targetcalls: { topic: null, events: versioned(targetcallsEvents) },
  targetmetrics: { topic: 'metrics', events: versioned(targetmetricsEvents) },
  accountmetrics: { topic: 'metrics', events: versioned(accountmetricsEvents) },
  quota: { topic: null, events: versioned(quotaEvents) },
  request: { topic: null, events: versioned(requestEvents) },
};

/** Every stored event, by stream kind. */
export const eventCatalogue: EventCatalogue = Object.fromEntries(
  Object.entries(streamKinds).flatMap(([kind, { events }]) => (Object.keys(events).length > 0 ? [[kind, events]] : [])),
);

/** Null for streams that are only read by id (`request`, `externalref`, `quota`, `targetcalls`) and for unknown kinds: the log passes over both. */
export const topicOf = (stream: string): Topic | null => streamKinds[kindOf(stream)]?.topic ?? null;
