import type { TSchema } from 'typebox';
import { accountEvents } from './account.ts';
import { apikeyEvents } from './apikey.ts';
import { clientEvents, clientnameEvents } from './client.ts';
import { accountmetricsEvents, targetmetricsEvents } from './insights.ts';
import { inviteEvents } from './invite.ts';
import { mediaEvents } from './media.ts';
import { postEvents } from './post.ts';
import { refreshEvents } from './refresh.ts';
import { reportEvents } from './report.ts';
import { requestEvents } from './request.ts';
import { targetEvents } from './target.ts';
import { webhookEvents } from './webhook.ts';
import { workspaceEvents } from './workspace.ts';

/** Every stored event, by stream kind. Event names are on disk for ever: add a version, never edit one. */

/** A pure function from the data of version n to that of version n + 1. */
export type Upcast = (data: Record<string, unknown>) => Record<string, unknown>;

export interface EventDefinition {
  readonly schema: TSchema;
  /** The version that this code writes. */
  readonly version: number;
  /** Upcasts from version 1, 2 … `version − 1`, in order. */
  readonly upcasts: readonly Upcast[];
}

export type EventCatalogue = Readonly<Record<string, Readonly<Record<string, EventDefinition>>>>;

const first = (schemas: Readonly<Record<string, TSchema>>): Record<string, EventDefinition> =>
  Object.fromEntries(Object.entries(schemas).map(([type, schema]) => [type, { schema, version: 1, upcasts: [] }]));

export const eventCatalogue: EventCatalogue = {
  workspace: first(workspaceEvents),
  apikey: first(apikeyEvents),
  client: first(clientEvents),
  clientname: first(clientnameEvents),
  invite: first(inviteEvents),
  account: first(accountEvents),
  post: first(postEvents),
  target: first(targetEvents),
  media: first(mediaEvents),
  webhook: first(webhookEvents),
  targetmetrics: first(targetmetricsEvents),
  accountmetrics: first(accountmetricsEvents),
  refresh: first(refreshEvents),
  report: first(reportEvents),
  request: first(requestEvents),
};
