/** What the numbered files make: tables and columns of each schema but `read`, whose views a rebuild makes anew. */

export const tables: Readonly<Record<string, string>> = {
  'auth.attempts': 'key failures last_at',
  'auth.last_uses': 'credential_id used_at',
  'auth.oauth_artifacts': 'model id_hash payload grant_id client_id consumed_at expires_at created_at',
  'auth.oauth_clients': 'client_id metadata key_version sealed created_at last_used_at created_from',
  'auth.passkeys': 'id person_id credential_id public_key counter transports name created_at last_used_at',
  'auth.people':
    'person_id email_mac mac_version password_hash totp_secret totp_version totp_step totp_confirmed recovery_macs recovery_version created_at era',
  'auth.person_links': 'token_hash person_id purpose created_at expires_at',
  'auth.sessions':
    'id secret_hash person_id workspace_id mode device address created_at last_used_at expires_at ended_at end_reason end_recorded',
  'auth.spent': 'hash expires_at',
  'auth.signing_keys': 'kid public_key key_version sealed created_at signs_at',
  'auth.withdrawals': 'subject times noted_at',
  'es.event_rows':
    'position stream revision id type data metadata created topic partition partition_key workspace unpacked_bytes packing',
  'es.schema_versions': 'number name checksum applied_at',
  'es.layout': 'one partitions',
  'es.workspace_events': 'workspace position',
  'es.workspace_index': 'one position event_id',
  'ops.app_budget_members': 'app budget begins member',
  'ops.app_budget_shares': 'app budget begins workspace_id used',
  'ops.app_budgets': 'app budget begins used',
  'ops.app_read_shares': 'app month workspace_id used',
  'ops.app_reads': 'app month used',
  'ops.app_rests': 'app what until failure',
  'ops.analytics_days': 'version workspace_id day',
  'ops.analytics_highest': 'version post position since held',
  'ops.analytics_late': 'version workspace_id after',
  'ops.analytics_marked': 'version workspace_id kind day since mark',
  'ops.analytics_readers': 'instance version until',
  'ops.analytics_rules': 'version rule workspace_id day',
  'ops.analytics_versions': 'one live newest',
  'ops.cadence_slots': 'workspace_id account_id version entries kept_until',
  'ops.clean_ups': 'stream workspace_id revision correlation_id causation_id progress failures due_at version',
  'ops.connect_attempts': 'token_hash browser_hash kind invite_id workspace_id client_id platform sealed expires_at',
  'ops.connect_codes': 'code workspace_id expires_at tries places',
  'ops.consumer_positions': 'consumer_group lane next_offset position epoch updated_at event_id event_position',
  'ops.credential_places': 'id kind workspace_id taken_at',
  'ops.data_keys': 'client_id key_version wrapped created_at destroyed_at',
  'ops.pushed_posts':
    'place post pushed_at reactions reacted_at discussion_group discussion_root comments last_comment',
  'ops.media_customers': 'customer_id bytes quota',
  'ops.media_imports': 'id asset_id key_version sealed noted_at',
  'ops.media_jobs':
    'asset_id workspace_id revision begun_at attempts failures fetches due_at noted_at tried_at video written fetch_at hidden_at',
  'ops.media_offers': 'asset_id key due_at seen_etag',
  'ops.media_recount': 'only_one after next_at',
  'ops.media_usage': 'asset_id customer_id bytes reserved_until',
  'ops.insights_accounts':
    'account_id workspace_id client_id platform network timezone connected revision not_before limits next_at',
  'ops.insights_asks': 'refresh_id workspace_id account_ids asked noted_at',
  'ops.insights_closings': 'client_id workspace_id erased after noted_at',
  'ops.insights_jobs':
    'id kind workspace_id account_id due_at post_id external_id published_at use has_video answered_at failures gone_at seen_revision wanted',
  'ops.insights_parked': 'id workspace_id account_id target_id platform reason raw at',
  'ops.insights_refresh_accounts': 'refresh_id account_id failed done',
  'ops.insights_refreshes': 'refresh_id workspace_id cause_id correlation_id waiting not_before',
  'ops.insights_zones': 'id timezone revision closed',
  'ops.network_notices': 'id network platform kind person said_at received_at code due_at failures done_at',
  'ops.network_rests': 'network version since until said',
  'ops.network_credentials':
    'account_id workspace_id client_id platform version sealed kept_at expires_at refresher refresh_until lost_since failures rests_until lapse_reason lapse_reported grant_id',
  'ops.parked_events': 'consumer_group stream revision event_id type position reason parked_at workspace_id retry_at',
  'ops.progress': 'id done at',
  'ops.projection_readers': 'instance name generation until',
  'ops.projections': 'name live shape newest models',
  'ops.publishing_holds': 'scope since set_by',
  'ops.quota_months': 'workspace_id month since noted_at',
  'ops.relay_checkpoints': 'name position epoch holder until saved_at event_id',
  'ops.report_exports': 'run_id report_id workspace_id ends_at',
  'ops.report_jobs': 'id report_id workspace_id attempts due_at written version',
  'ops.report_reviews': 'id workspace_id erased after noted_at',
  'ops.report_run_places': 'run_id report_id workspace_id taken_at',
  'ops.report_schedules': 'report_id workspace_id after due_at version look_at',
  'ops.report_subjects': 'client_id report_id workspace_id',
  'ops.schema_versions': 'number name checksum applied_at',
  'ops.secret_keys': 'version check_value made_at',
  'ops.restore_words': 'account_id said_at said_by',
  'ops.restores': 'restored_at store_as_of declared_by completed_at',
  'ops.shape_readers': 'instance shapes until',
  'ops.skipped_events': 'consumer_group stream revision event_id type reason skipped_at',
  'ops.webhook_deliveries':
    'event_time id endpoint_id workspace_id message_id type position replay_id status created_at updated_at delivered_at attempts client_id begun',
  'ops.webhook_endpoints': 'id workspace_id revision state active disabled_position version disabled_at',
  'ops.webhook_health': 'endpoint_id seen_revision failing_since failed_at consecutive open_until opened disable',
  'ops.webhook_intervals': 'endpoint_id from_position to_position workspace_id events version client_ids',
  'ops.webhook_job_schedule': 'workspace_id next_at version',
  'ops.webhook_jobs':
    'id kind endpoint_id workspace_id cursor from_inclusive settle_at last_position from_time to_time types status read_to minted not_before failure created_at updated_at completed_at known_epoch',
  'ops.webhook_marks': 'position at',
  'ops.webhook_messages': 'event_time id workspace_id type position lane body',
  'ops.webhook_places': 'webhook_id workspace_id taken_at',
  'ops.webhook_rotations': 'endpoint_id revision secrets',
  'ops.webhook_queue':
    'delivery_id event_time message_id endpoint_id workspace_id lane next_at leased attempt tries trigger forced',
  'ops.webhook_version': 'one version',
  'ops.work_leases': 'kind id holder epoch until not_before',
  'ops.workspace_events': 'workspace position revision bytes stream',
  'ops.workspace_index': 'one position event_id',
  'sandbox.after_steps':
    'seq platform account_id target_id post_id step media_id sha256 call_started_at seen_at outcome refusal',
  'sandbox.clock': 'one offset_ms',
  'sandbox.comments':
    'seq platform account_id target_id post_id form content call_started_at seen_at outcome comment_id refusal',
  'sandbox.containers': 'id platform account_id target_id content_hash ready_at expires_at created_at',
  'sandbox.ended_versions': 'platform version',
  'sandbox.fired': 'target_id fault times first_at',
  'sandbox.ledger':
    'seq platform account_id target_id attempt client_key keyed content_hash content overrides call_started_at seen_at outcome visible_at post_id permalink duplicate_of refusal media segment reply_to clock_offset_ms cover_frame_ms scheduled_for known_at native_fails workspace_id',
  'sandbox.other_times': 'platform post_id by_ms',
  'sandbox.removed': 'platform post_id removed_at',
  'sandbox.undone': 'platform post_id undone_at',
  'sandbox.workspace_clocks': 'workspace_id offset_ms',
};

export const sequences: readonly string[] = [
  'es.positions',
  'ops.analytics_marks',
  'ops.analytics_recounts',
  'ops.work_lease_epochs',
  'sandbox.after_steps_seq_seq',
  'sandbox.comments_seq_seq',
  'sandbox.ledger_seq_seq',
  'sandbox.post_number',
];

export const schemas: readonly string[] = ['auth', 'es', 'ops', 'read', 'sandbox'];

/** Projection, view and the stream kind that owns its rows. */
export const readModels: readonly string[] = [
  'workspaces: read.workspaces of workspace',
  'workspaces: read.api_keys of apikey',
  'workspaces: read.grants of grant',
  'workspaces: read.team_invites of teaminvite',
  'clients: read.clients of client',
  'clients: read.invites of invite',
  'clients: read.accounts of account',
  'posts: read.posts of post',
  'posts: read.post_targets of target',
  'approvals: read.approvals of approval',
  'media: read.media of media',
  'webhooks: read.webhooks of webhook',
  'reports: read.reports of report',
  'campaigns: read.campaigns of campaign',
];

/**
 * Projection, shape, and a digest of what its tables are made with. Where it changes the shape is raised: processes of
 * both then run beside each other, each on tables of its own.
 */
export const readShapes: readonly string[] = [
  'workspaces 1 cf4adb631ccd7841',
  'clients 1 c17f97f134684a86',
  'posts 3 96e2bbfbf9a27435',
  'approvals 1 250b5e175b838074',
  'media 1 b8b7274d8cf7c625',
  'webhooks 1 7f67e39f9a303fbc',
  'reports 1 929b838db92ecd60',
  'campaigns 1 351c90f43e983617',
];

export const clickhouseTables: readonly string[] = [
  'observations',
  'account_observations',
  'post_days',
  'gain_slices',
  'account_days',
  'account_figures_days',
  'account_audience_days',
  'client_days',
  'workspace_days',
];

/** Schema, file and the first 16 digits of its checksum. */
export const schemaFiles: readonly string[] = [
  'ops 001-consuming 61147891deedf9f3',
  'ops 002-accounts 2506b681f7d2bd9c',
  'ops 003-work 8b7b2ad2100cc4db',
  'ops 004-media 7909102fe68fd6e7',
  'ops 005-insights ac5fb10c62d8a9cd',
  'ops 006-analytics 5cad8cf8b6c6ec79',
  'ops 007-reports bf08c238e483fdc2',
  'ops 008-webhooks 4319c5d9bc7ddf9f',
  'ops 009-auth bb1e1b6005d89f79',
  'ops 010-sandbox 8ad87a27f9047941',
  'ops 011-shapes bd85d2419e3d8494',
  'ops 012-grants f5152b5f19388ee3',
  'ops 013-app-budgets e2032168853de64b',
  'ops 014-network-rests a6eacbccc422ba01',
  'ops 015-network-notices ef17a358e7659fcf',
  'ops 016-sandbox-after-steps dae86b71fc0fa7f6',
  'ops 017-webhook-attempts-begun 05eaddbcd51e31dc',
  'ops 018-sandbox-other-times d7089a3952677de8',
  'es 001-events 7bc8414f60206112',
  'es 002-append bd113e1c81a1fdfe',
  'es 003-workspaces 258f7b23fdc07ea3',
  'clickhouse 001-observations 56c1374795dc9f24',
  'clickhouse 002-account-observations 1ab6f286367bd010',
  'clickhouse 003-post-days 572ae3c5df8fd791',
  'clickhouse 004-gain-slices 0ed8fce08381839c',
  'clickhouse 005-account-days 61ae8348f49728d9',
  'clickhouse 006-account-figures-days 02df46c84edabba9',
  'clickhouse 007-account-audience-days c3befffeab3dea1f',
  'clickhouse 008-client-days ea7c8815ae8d209a',
  'clickhouse 009-workspace-days b7811bbf0af9a5bc',
];
