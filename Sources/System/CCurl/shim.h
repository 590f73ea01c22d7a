#include <curl/curl.h>

// libcurl's functions with a variable number of arguments, which Swift cannot call: one for each kind of argument that an option takes.
static inline CURLcode carillon_curl_set_long(CURL *handle, CURLoption option, long value) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode carillon_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode carillon_curl_set_pointer(CURL *handle, CURLoption option, const void *value) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode carillon_curl_set_write(CURL *handle, CURLoption option, size_t (*value)(char *, size_t, size_t, void *)) { return curl_easy_setopt(handle, option, value); }
static inline CURLcode carillon_curl_set_open(CURL *handle, curl_socket_t (*value)(void *, curlsocktype, struct curl_sockaddr *)) { return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, value); }
static inline CURLcode carillon_curl_get_long(CURL *handle, CURLINFO info, long *value) { return curl_easy_getinfo(handle, info, value); }
static inline CURLcode carillon_curl_get_pointer(CURL *handle, CURLINFO info, void *value) { return curl_easy_getinfo(handle, info, value); }
static inline CURLMcode carillon_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode carillon_curl_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) { return curl_multi_setopt(multi, option, value); }
static inline CURLMcode carillon_curl_multi_set_socket(CURLM *multi, int (*value)(CURL *, curl_socket_t, int, void *, void *)) { return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value); }
static inline CURLMcode carillon_curl_multi_set_timer(CURLM *multi, int (*value)(CURLM *, long, void *)) { return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, value); }
