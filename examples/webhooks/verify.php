<?php
// Verify notifications in PHP, without any package.

/**
 * Return true if the notification is signed with the secret and at most five minutes old.
 *
 * $headers: the request's headers, with names in lower case: array_change_key_case(getallheaders())
 * $body: the request's body as it came: file_get_contents('php://input')
 * $secret: 'whsec_...', as `imgsvc accounts webhook-secret` shows it
 */
function is_genuine(array $headers, string $body, string $secret): bool
{
    [$id, $timestamp, $signatures] = array_map(
        fn ($name) => $headers["webhook-$name"] ?? '',
        ['id', 'timestamp', 'signature']
    );
    if (abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}
