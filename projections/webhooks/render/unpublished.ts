import type { ClientNameEvent } from '#schemas/client.ts';
import type { ExternalRefEvent } from '#schemas/externalref.ts';
import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import type { QuotaEvent } from '#schemas/quota.ts';
import type { RequestEvent } from '#schemas/request.ts';
import type { Unpublished } from './rule.ts';

/** Stream kinds that publish nothing. */

const ofNames = 'a step of claiming a name; events of the client show who has it';
export const clientname: Unpublished<ClientNameEvent> = { NameClaimed: ofNames, NameReleased: ofNames };

const ofRefs = 'a step of claiming a reference; events of the post that has it show it';
export const externalref: Unpublished<ExternalRefEvent> = { ExternalRefClaimed: ofRefs, ExternalRefReleased: ofRefs };

const ofQuotas = 'a step of scheduling targets; events of the targets show when each is due';
export const quota: Unpublished<QuotaEvent> = { QuotaReserved: ofQuotas, QuotaReleased: ofQuotas };

const ofRequests = 'a step of carrying out a call; its effects are events of other streams';
export const request: Unpublished<RequestEvent> = { RequestAccepted: ofRequests, RequestCompleted: ofRequests };

const ofFigures = 'one for each observation, which is too many; analytics.refreshed reports that figures are new';
export const targetmetrics: Unpublished<TargetMetricsEvent> = { TargetMetricsObserved: ofFigures };
export const accountmetrics: Unpublished<AccountMetricsEvent> = { AccountMetricsObserved: ofFigures };
